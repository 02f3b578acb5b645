// Oracle3 renders charts by Helm 3's own library, as `helm template` does, many
// in one process. Cases and answers are lines of JSON.
package main

import (
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chartutil"

	"catamaran.local/oracle/lines"
)

func main() {
	if err := lines.Serve(chartutil.DefaultCapabilities.HelmVersion.Version, render); err != nil {
		fmt.Fprintln(os.Stderr, "oracle3:", err)
		os.Exit(1)
	}
}
