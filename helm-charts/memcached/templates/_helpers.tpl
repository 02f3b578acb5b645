{{/*
The chart's name, or nameOverride. A label value ends at 63 characters.
*/}}
{{- define "memcached.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
The name of the release's objects: fullnameOverride if given; the release's
name alone if that already tells what runs here; else both.
*/}}
{{- define "memcached.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $both := printf "%s-%s" .Release.Name $name }}
{{- $short := ternary .Release.Name $both (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default $short | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
Name and version of the chart, fit for a label.
*/}}
{{- define "memcached.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
Labels by which the release's pods are selected. They can never change on a
Deployment that exists.
*/}}
{{- define "memcached.selectorLabels" -}}
app.kubernetes.io/name: {{ include "memcached.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/*
Labels of every object.
*/}}
{{- define "memcached.labels" -}}
helm.sh/chart: {{ include "memcached.chart" . }}
{{ include "memcached.selectorLabels" . }}
{{- with .Chart.AppVersion }}
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/*
The service account the pods run as.
*/}}
{{- define "memcached.serviceAccountName" -}}
{{- $own := ternary (include "memcached.fullname" .) "default" .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default $own }}
{{- end }}
