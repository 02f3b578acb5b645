package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	c2 "helm.sh/helm/v4/pkg/chart/v2"
	c2load "helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/cli/values"
	"helm.sh/helm/v4/pkg/getter"
	release "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"

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
	releaser, err := client.RunWithContext(context.Background(), loaded, vals)
	rel, _ := releaser.(*release.Release)
	if err != nil && rel != nil {
		err = fmt.Errorf("%w\n\nUse --debug flag to render out invalid YAML", err)
	}
	if err != nil {
		return "", "", err
	}
	return manifests(rel), rel.Info.Notes, nil
}

func install(c *lines.Case) (*action.Install, error) {
	cfg := action.NewConfiguration()
	cfg.SetLogger(slog.DiscardHandler)
	client := action.NewInstall(cfg)
	if c.KubeVersion != "" {
		version, err := common.ParseKubeVersion(c.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("invalid kube version '%s': %w", c.KubeVersion, err)
		}
		client.KubeVersion = version
	}
	client.DryRunStrategy = action.DryRunClient
	client.ReleaseName = c.Name
	client.Replace = true
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
func load(c *lines.Case) (chart.Charter, error) {
	if c.Path != "" {
		return loader.Load(c.Path)
	}
	files := make([]*archive.BufferedFile, 0, len(c.Files))
	for _, file := range c.Files {
		files = append(files, &archive.BufferedFile{Name: file.Name, Data: file.Bytes()})
		if file.Name != "Chart.yaml" {
			continue
		}
		var base struct {
			APIVersion string `json:"apiVersion,omitempty"`
		}
		if err := yaml.Unmarshal(file.Bytes(), &base); err != nil {
			return nil, fmt.Errorf("cannot load Chart.yaml: %w", err)
		}
		if v := base.APIVersion; v != "" && v != c2.APIVersionV1 && v != c2.APIVersionV2 {
			return nil, errors.New("unsupported chart version")
		}
	}
	return c2load.LoadFiles(files)
}

func check(loaded chart.Charter) error {
	accessor, err := chart.NewAccessor(loaded)
	if err != nil {
		return err
	}
	switch kind := accessor.MetadataAsMap()["Type"]; kind {
	case "", "application":
	default:
		return fmt.Errorf("%s charts are not installable", kind)
	}
	if wanted := accessor.MetaDependencies(); len(wanted) > 0 {
		if err := action.CheckDependencies(loaded, wanted); err != nil {
			return fmt.Errorf("an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies: %w", err)
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
