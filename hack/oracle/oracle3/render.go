package main

import (
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/release"

	"catamaran.local/oracle/lines"
)

var getters = getter.All(cli.New())

// render goes the way of `helm template`: the same steps, in the same order.
func render(c *lines.Case) (string, string, error) {
	client, err := install(c)
	if err != nil {
		return "", "", err
	}
	vals, err := userValues(c)
	if err != nil {
		return "", "", err
	}
	loaded, err := load(c)
	if err != nil {
		return "", "", err
	}
	if err := check(loaded); err != nil {
		return "", "", err
	}
	rel, err := client.Run(loaded, vals)
	if err != nil && rel != nil {
		err = fmt.Errorf("%w\n\nUse --debug flag to render out invalid YAML", err)
	}
	if err != nil {
		return "", "", err
	}
	return manifests(rel), rel.Info.Notes, nil
}

func install(c *lines.Case) (*action.Install, error) {
	client := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	if c.KubeVersion != "" {
		version, err := chartutil.ParseKubeVersion(c.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("invalid kube version '%s': %s", c.KubeVersion, err)
		}
		client.KubeVersion = version
	}
	client.DryRunOption = "true"
	client.DryRun = true
	client.ReleaseName = c.Name
	client.Replace = true
	client.ClientOnly = true
	client.APIVersions = c.APIVersions
	client.IncludeCRDs = c.IncludeCRDs
	client.IsUpgrade = c.IsUpgrade
	client.Namespace = c.Namespace
	return client, nil
}

func userValues(c *lines.Case) (map[string]any, error) {
	names, err := c.WriteValues()
	if err != nil {
		return nil, err
	}
	options := values.Options{
		ValueFiles: names, JSONValues: c.SetJSON, Values: c.Set,
		StringValues: c.SetString, LiteralValues: c.SetLiteral,
	}
	return options.MergeValues(getters)
}

// load reads a chart in memory as the command reads a folder.
func load(c *lines.Case) (*chart.Chart, error) {
	if c.Path != "" {
		return loader.Load(c.Path)
	}
	files := make([]*loader.BufferedFile, 0, len(c.Files))
	for _, file := range c.Files {
		files = append(files, &loader.BufferedFile{Name: file.Name, Data: file.Bytes()})
	}
	return loader.LoadFiles(files)
}

func check(loaded *chart.Chart) error {
	switch kind := loaded.Metadata.Type; kind {
	case "", "application":
	default:
		return fmt.Errorf("%s charts are not installable", kind)
	}
	if wanted := loaded.Metadata.Dependencies; wanted != nil {
		if err := action.CheckDependencies(loaded, wanted); err != nil {
			return fmt.Errorf("An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to fetch missing dependencies: %w", err) //nolint:staticcheck // Helm's text
		}
	}
	return nil
}

func manifests(rel *release.Release) string {
	var text strings.Builder
	fmt.Fprintln(&text, strings.TrimSpace(rel.Manifest))
	for _, hook := range rel.Hooks {
		fmt.Fprintf(&text, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	return text.String()
}
