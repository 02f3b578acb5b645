// Renders one chart through Helm's own library, once for every line on
// standard input, and answers each with the nanoseconds of its steps: load,
// values, render, sort. `make bench` measures us against it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/cli/values"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/getter"
	release "helm.sh/helm/v4/pkg/release/v1/util"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: render CHART [VALUES.yaml...]")
		os.Exit(2)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		times, err := once(os.Args[1], os.Args[2:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		fmt.Println(times[0].Nanoseconds(), times[1].Nanoseconds(), times[2].Nanoseconds(), times[3].Nanoseconds())
	}
}

// What `helm template` does, as action.Install.Run has it.
func once(place string, files []string) (times [4]time.Duration, err error) {
	start := time.Now()
	lap := func(step int) {
		times[step] = time.Since(start)
		start = time.Now()
	}
	given := values.Options{ValueFiles: files}
	user, err := given.MergeValues(getter.Providers{})
	if err != nil {
		return times, err
	}
	start = time.Now()
	// Afresh each time: processing dependencies changes a chart.
	chart, err := loader.Load(place)
	if err != nil {
		return times, err
	}
	lap(0)
	runtime.GC() // the garbage of loading is not rendering's
	start = time.Now()
	if err := chartutil.ProcessDependencies(chart, user); err != nil {
		return times, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	facts := common.ReleaseOptions{Name: "rel", Namespace: "corpus", Revision: 1, IsInstall: true}
	top, err := util.ToRenderValues(chart, user, facts, capabilities)
	if err != nil {
		return times, err
	}
	lap(1)
	rendered, err := engine.Render(chart, top)
	if err != nil {
		return times, err
	}
	lap(2)
	for name := range rendered {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(rendered, name)
		}
	}
	_, _, err = release.SortManifests(rendered, nil, release.InstallOrder)
	lap(3)
	return times, err
}
