// Oracle4 renders charts by Helm 4's own library, as `helm template` does, many
// in one process. Cases and answers are lines of JSON.
package main

import (
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/common"

	"catamaran.local/oracle/lines"
)

func main() {
	if err := lines.Serve(common.DefaultCapabilities.HelmVersion.Version, render); err != nil {
		fmt.Fprintln(os.Stderr, "oracle4:", err)
		os.Exit(1)
	}
}
