//! What templates print: objects, hooks, texts that are no objects; and schemas of values.

use super::expr::{Expressions, Library};
use super::{statements, yaml};
use crate::dice::Dice;

/// A document of a template: any object, a hook, or what is none.
pub(super) fn document(dice: &mut Dice, library: &Library) -> String {
    let separator = dice.pick(&[
        "---\n",
        "---\n",
        "\n---\n",
        "--- # c\n",
        "---   \n",
        "  ---\n",
        "----\n",
        "--- a: b\n",
        "---\n---\n",
        "---\r\n",
        "",
        "\n\n",
        "# only a comment\n---\n",
        "x---\n",
        "---x: 1\n",
    ]);
    let separator = if dice.chance(60) { "---\n" } else { separator };
    let kind = dice.pick(&[
        "ConfigMap",
        "Secret",
        "Deployment",
        "Namespace",
        "Job",
        "Unknown",
        "Another",
        "ServiceAccount",
        "List",
        "Service",
        "Pod",
        "CustomResourceDefinition",
        "NetworkPolicy",
        "StorageClass",
        "APIService",
        "IngressClass",
        "ClusterRoleBinding",
    ]);
    let mut text =
        format!("{separator}apiVersion: v1\nkind: {kind}\nmetadata:\n  name: n{}\n", dice.below(9));
    match dice.below(12) {
        0 | 1 => text.push_str(&hook(dice)),
        2 => text.push_str("  annotations: {\"helm.sh/resource-policy\": keep}\n"),
        3 => text.push_str("  labels:\n    {{- include \"lib.hello\" . | nindent 4 }}: x\n"),
        _ => {}
    }
    let body = dice.pick(&[
        "data:\n  v: {{ .Values | toJson | quote }}\n",
        "data:\n{{ toYaml .Values | indent 2 }}\n",
        "data: {{ .Values.global | toJson }}\n",
        "data:\n  a: {{ .Values.a }}\n  n: {{ .Chart.Name }}\n  t: {{ .Template.Name }} {{ .Template.BasePath }}\n",
        "data:\n  chart: {{ .Chart | toJson | quote }}\n",
        "data:\n  caps: {{ .Capabilities.KubeVersion.Version }} {{ .Capabilities.APIVersions.Has \"example.com/v1/Thing\" }}\n",
        "data:\n  release: {{ .Release | toJson | quote }}\n",
        "data:\n  {{- range $k, $v := .Values.map }}\n  {{ $k }}: {{ $v | quote }}\n  {{- end }}\n",
        "data:\n  subs: {{ keys .Subcharts | sortAlpha | join \",\" }}\n",
        "data:\n  files: {{ range $p, $_ := .Files.Glob \"**\" }}{{ $p }} {{ end }}\n",
        "data:\n  h: {{ include \"lib.hello\" . }}\n",
        "data:\n  h: {{ include \"lib.1\" . | quote }}\n",
        "data: |\n  text\n\n\n",
        "data: |+\n  text\n\n\n",
        "stringData:\n  bad: [\n",
        "data: {{ set .Values.map \"set\" 1 | toJson }}{{ toJson .Values.global }}\n",
        "{{ if .Values.enabled }}on: true{{ end }}\n",
        "a: {{ .Values.map.b.c }}\n",
        "\tx: tab\n",
        "a: b: c\n",
        "{{ .Values.str.oops }}\n",
        "{{- /* nothing */ -}}\n",
    ]);
    text.push_str(body);
    match dice.below(14) {
        0 => "{{- if .Values.missing }}\nkind: X\n{{- end }}\n".into(),
        1 => format!("{separator}# nothing but a comment\n"),
        2 => format!(
            "{separator}{}",
            dice.pick(&[
                "[1, 2]\n",
                "text\n",
                "kind: 1\n",
                "kind: [a]\n",
                "metadata: x\n",
                "{}\n",
                "null\n",
                "metadata: {name: 1}\n",
                "metadata: {annotations: {a: 1}}\n",
                "kind: X\nkind: Y\n"
            ])
        ),
        3 => format!("{separator}{}", yaml::document(dice)),
        4 => {
            let mut make = Expressions::new(library, dice.clone());
            make.texts = false;
            let body = statements::body(&mut make, 1, false);
            dice.bits();
            body.replace("$.Values", ".Values")
        }
        _ => text,
    }
}

fn hook(dice: &mut Dice) -> String {
    let events = dice.pick(&[
        "pre-install",
        "post-install,post-upgrade",
        "test",
        "test-success",
        "pre-delete, pre-rollback",
        "crd-install",
        "",
        "bogus,pre-install",
        "PRE-INSTALL",
        "pre-upgrade",
    ]);
    let mut text = format!("  annotations:\n    \"helm.sh/hook\": \"{events}\"\n");
    if dice.chance(40) {
        let weight = dice.pick(&["1", "-5", "x", "010", "1.5", " 2", "99999999999999999999"]);
        text.push_str(&format!("    \"helm.sh/hook-weight\": \"{weight}\"\n"));
    }
    if dice.chance(30) {
        text.push_str("    \"helm.sh/hook-delete-policy\": before-hook-creation,hook-succeeded\n");
    }
    text
}

pub(super) fn schema(dice: &mut Dice) -> String {
    let property = |dice: &mut Dice| -> &'static str {
        dice.pick(&[
            "{\"type\": \"string\"}",
            "{\"type\": \"integer\"}",
            "{\"type\": [\"object\", \"null\"]}",
            "{\"minimum\": 5}",
            "{\"enum\": [1, \"a\"]}",
            "{\"const\": 1}",
            "{\"pattern\": \"^x\"}",
            "{\"maxLength\": 1}",
            "{\"required\": [\"q\"]}",
            "{\"additionalProperties\": false}",
            "{\"items\": {\"type\": \"string\"}}",
            "{\"$ref\": \"#/definitions/d\"}",
            "{\"not\": {}}",
            "{\"oneOf\": [{\"type\": \"string\"}, {\"minimum\": 0}]}",
            "{\"anyOf\": [{\"type\": \"null\"}]}",
            "true",
            "false",
            "{\"minItems\": 3}",
            "{\"uniqueItems\": true}",
            "{\"multipleOf\": 2}",
            "{\"format\": \"ipv4\"}",
            "{\"type\": \"bogus\"}",
            "{\"minProperties\": 3}",
            "{\"propertyNames\": {\"maxLength\": 0}}",
        ])
    };
    let names = ["str", "int", "list", "map", "missing", "global"];
    let properties: Vec<_> = (0..=dice.below(3))
        .map(|at| format!("\"{}\": {}", names[(at + dice.below(6)) % 6], property(dice)))
        .collect();
    let draft = dice.pick(&[
        "",
        "",
        "\"$schema\": \"http://json-schema.org/draft-07/schema#\", ",
        "\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", ",
        "\"$schema\": \"http://json-schema.org/draft-04/schema#\", ",
    ]);
    let more = dice.pick(&[
        "",
        "",
        ", \"required\": [\"zz\", \"str\"]",
        ", \"additionalProperties\": false",
        ", \"type\": \"array\"",
    ]);
    format!(
        "{{{draft}\"definitions\": {{\"d\": {{\"type\": \"boolean\"}}}}, \"properties\": {{{}}}{more}}}",
        properties.join(", ")
    )
}
