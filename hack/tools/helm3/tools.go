//go:build tools

// Package tools names the program that hack/tools.sh builds, so that
// `go mod tidy` keeps its dependencies, and with them their sums, in this
// module's go.mod and go.sum. It is never compiled.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
