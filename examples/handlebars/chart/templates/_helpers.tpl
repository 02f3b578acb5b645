{{- /* A named template in Go: Handlebars includes it as well. */ -}}
{{- define "greeter.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
