//! The objects at the top of a template's data, other than values and files.

use std::sync::LazyLock;

use catamaran_gotemplate::{Ctx, FuncError, Heap, Method, NamedType, Object, Str, Type, Value};

use super::{Capabilities, KubeVersion, ReleaseFacts};
use crate::values::Node;
use crate::{Dependency, Maintainer, Profile};

/// `.Release`, a plain map.
pub(super) fn release(heap: &mut Heap, facts: &ReleaseFacts) -> Value {
    // In the order of the keys.
    let values = [
        facts.is_install.into(),
        (!facts.is_install && facts.revision > 0).into(),
        facts.name.as_str().into(),
        facts.namespace.as_str().into(),
        Value::Int(i64::from(facts.revision)),
        SERVICE.clone(),
    ];
    Value::Map(heap.new_map_with(Type::MAP, RELEASE.iter().cloned().zip(values).collect()))
}

/// The same in all renderings.
static RELEASE: LazyLock<[Str; 6]> = LazyLock::new(|| {
    ["IsInstall", "IsUpgrade", "Name", "Namespace", "Revision", "Service"].map(Str::from)
});
static SERVICE: LazyLock<Value> = LazyLock::new(|| "Helm".into());

/// A Go struct: fields in order, and what JSON and YAML make of it.
#[derive(Debug)]
struct Struct {
    ty: &'static NamedType,
    fields: Vec<(&'static str, Value)>,
    /// By the names of its JSON tags; `None` = by the names of its fields.
    plain: Option<Value>,
    /// Its fields as it prints them, if those are others: unexported ones, embedded structs.
    printed: Option<Vec<(&'static str, Value)>>,
}

impl Struct {
    fn new(ty: &'static NamedType, fields: Vec<(&'static str, Value)>) -> Self {
        Self { ty, fields, plain: None, printed: None }
    }
}

impl Object for Struct {
    fn go_type(&self) -> &'static NamedType {
        self.ty
    }

    fn field(&self, _heap: &mut Heap, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.printed.clone().unwrap_or_else(|| self.fields.clone())
    }

    fn exported(&self) -> Option<Value> {
        let blank = |(name, value): &(&'static str, Value)| {
            let exported = name.starts_with(|c: char| c.is_uppercase());
            (*name, if exported { value.clone() } else { "".into() })
        };
        let printed = self.printed.as_ref()?.iter().map(blank).collect();
        let (fields, plain) = (self.fields.clone(), self.plain.clone());
        Some(Value::object(Self { plain, printed: Some(printed), ..Self::new(self.ty, fields) }))
    }

    fn plain(&self) -> Option<Value> {
        self.plain.clone()
    }
}

// ---- .Chart

/// `.Chart`: in 3.18 a struct, of which an unknown field is an error; in 4.3 a
/// map of the same names.
pub(super) fn chart(heap: &mut Heap, node: &Node<'_>, is_root: bool, profile: Profile) -> Value {
    match profile {
        Profile::Helm318 => chart_struct(heap, node, is_root),
        Profile::Helm43 => {
            let mut fields = metadata_fields(heap, node, profile);
            fields.push(("IsRoot", "", Value::Bool(is_root)));
            map_of(heap, &fields)
        }
    }
}

static CHART: NamedType = NamedType {
    name: "struct { chart.Metadata; IsRoot bool }",
    underlying: Type::Struct,
    methods: &[],
};
static METADATA: NamedType =
    NamedType { name: "chart.Metadata", underlying: Type::Struct, methods: &[] };
static MAINTAINER: NamedType =
    NamedType { name: "*chart.Maintainer", underlying: Type::Pointer, methods: &[] };
static DEPENDENCY: NamedType =
    NamedType { name: "*chart.Dependency", underlying: Type::Pointer, methods: &[] };

/// Go's name, the JSON tag, the value.
type Field = (&'static str, &'static str, Value);

fn chart_struct(heap: &mut Heap, node: &Node<'_>, is_root: bool) -> Value {
    let mut fields = metadata_fields(heap, node, Profile::Helm318);
    let metadata = fields.iter().map(|(name, _, value)| (*name, value.clone())).collect();
    let metadata = Value::object(Struct::new(&METADATA, metadata));
    let is_root = Value::Bool(is_root);
    fields.push(("IsRoot", "IsRoot", is_root.clone()));
    let mut chart = struct_of(heap, &CHART, fields);
    chart.printed = Some(vec![("Metadata", metadata), ("IsRoot", is_root)]);
    Value::object(chart)
}

fn metadata_fields(heap: &mut Heap, node: &Node<'_>, profile: Profile) -> Vec<Field> {
    let metadata = &node.chart.metadata;
    let text = |text: &str| Value::from(text);
    let maintainers = metadata.maintainers.as_ref();
    let maintainers =
        maintainers.map(|all| all.iter().map(|m| maintainer(heap, m, profile)).collect());
    let dependencies = node.requirements.as_ref();
    let dependencies =
        dependencies.map(|all| all.iter().map(|d| dependency(heap, d, profile)).collect());
    let texts_by_name = Type::Map(&Type::String);
    let annotations = match &metadata.annotations {
        Some(_) => heap.new_map_of(texts_by_name),
        None => heap.new_nil_map(texts_by_name),
    };
    for (key, value) in metadata.annotations.iter().flatten() {
        heap.set(annotations, key.as_str(), value.as_str());
    }
    vec![
        ("Name", "name", text(&node.name)),
        ("Home", "home", text(&metadata.home)),
        ("Sources", "sources", texts(heap, metadata.sources.as_deref(), profile)),
        ("Version", "version", text(&metadata.version)),
        ("Description", "description", text(&metadata.description)),
        ("Keywords", "keywords", texts(heap, metadata.keywords.as_deref(), profile)),
        ("Maintainers", "maintainers", list(heap, &MAINTAINERS, maintainers, profile)),
        ("Icon", "icon", text(&metadata.icon)),
        ("APIVersion", "apiVersion", text(&metadata.api_version)),
        ("Condition", "condition", text(&metadata.condition)),
        ("Tags", "tags", text(&metadata.tags)),
        ("AppVersion", "appVersion", text(&metadata.app_version)),
        ("Deprecated", "deprecated", Value::Bool(metadata.deprecated)),
        ("Annotations", "annotations", Value::Map(annotations)),
        ("KubeVersion", "kubeVersion", text(&metadata.kube_version)),
        ("Dependencies", "dependencies", list(heap, &DEPENDENCIES, dependencies, profile)),
        ("Type", "type", text(&metadata.kind)),
    ]
}

static MAINTAINERS: Type = Type::List(&Type::Named(&MAINTAINER));
static DEPENDENCIES: Type = Type::List(&Type::Named(&DEPENDENCY));

fn maintainer(heap: &mut Heap, maintainer: &Maintainer, profile: Profile) -> Value {
    let Maintainer { name, email, url } = maintainer;
    let fields = vec![
        ("Name", "name", Value::from(name.as_str())),
        ("Email", "email", Value::from(email.as_str())),
        ("URL", "url", Value::from(url.as_str())),
    ];
    match profile {
        Profile::Helm318 => Value::object(struct_of(heap, &MAINTAINER, fields)),
        Profile::Helm43 => map_of(heap, &fields),
    }
}

fn dependency(heap: &mut Heap, dependency: &Dependency, profile: Profile) -> Value {
    let imports = dependency.import_values.iter();
    let imports: Vec<_> = imports
        .map(|import| crate::values::tables::load_value(heap, import).unwrap_or_default())
        .collect();
    let imports = Some(imports).filter(|imports| !imports.is_empty());
    let tags = Some(&*dependency.tags).filter(|tags| !tags.is_empty());
    let fields = vec![
        ("Name", "name", Value::from(dependency.name.as_str())),
        ("Version", "version", Value::from(dependency.version.as_str())),
        ("Repository", "repository", Value::from(dependency.repository.as_str())),
        ("Condition", "condition", Value::from(dependency.condition.as_str())),
        ("Tags", "tags", texts(heap, tags, profile)),
        ("Enabled", "enabled", Value::Bool(dependency.enabled)),
        ("ImportValues", "import-values", list(heap, &Type::LIST, imports, profile)),
        ("Alias", "alias", Value::from(dependency.alias.as_str())),
    ];
    match profile {
        Profile::Helm318 => Value::object(struct_of(heap, &DEPENDENCY, fields)),
        Profile::Helm43 => map_of(heap, &fields),
    }
}

/// In 4.3 every list of `.Chart` has become one of anything, and never nil.
fn list(heap: &mut Heap, ty: &'static Type, items: Option<Vec<Value>>, profile: Profile) -> Value {
    Value::List(match (profile, items) {
        (Profile::Helm43, items) => heap.new_list(items.unwrap_or_default()),
        (Profile::Helm318, None) => heap.new_nil_list(*ty),
        (Profile::Helm318, Some(items)) => heap.new_list_of(*ty, items),
    })
}

fn texts(heap: &mut Heap, texts: Option<&[String]>, profile: Profile) -> Value {
    let items = texts.map(|texts| texts.iter().map(|text| text.as_str().into()).collect());
    list(heap, &Type::STRINGS, items, profile)
}

fn map_of(heap: &mut Heap, fields: &[Field]) -> Value {
    let map = heap.new_map();
    for (name, _, value) in fields {
        heap.set(map, *name, value.clone());
    }
    Value::Map(map)
}

/// JSON leaves empty fields out (`omitempty`), except a dependency's name and repository.
fn struct_of(heap: &Heap, ty: &'static NamedType, fields: Vec<Field>) -> Struct {
    let is_dependency = ty.name == DEPENDENCY.name;
    let tagged = fields.iter().filter(|(_, tag, value)| {
        let stays = is_dependency && matches!(*tag, "name" | "repository") || *tag == "IsRoot";
        stays || heap.truth(value)
    });
    let tagged = tagged.map(|(_, tag, value)| (*tag, value.clone())).collect();
    let fields = fields.into_iter().map(|(name, _, value)| (name, value)).collect();
    let plain = Some(Value::object(Struct::new(ty, tagged)));
    Struct { plain, ..Struct::new(ty, fields) }
}

// ---- .Capabilities

static CAPABILITIES_318: NamedType =
    NamedType { name: "*chartutil.Capabilities", underlying: Type::Pointer, methods: &[] };
static CAPABILITIES_43: NamedType =
    NamedType { name: "*common.Capabilities", underlying: Type::Pointer, methods: &[] };
static KUBE_VERSION_318: NamedType =
    NamedType { name: "chartutil.KubeVersion", underlying: Type::Struct, methods: KUBE_METHODS };
static KUBE_VERSION_43: NamedType =
    NamedType { name: "common.KubeVersion", underlying: Type::Struct, methods: KUBE_METHODS };
/// The same without its address, and so without the methods.
static PLAIN_VERSION_318: NamedType = NamedType { methods: &[], ..KUBE_VERSION_318 };
static PLAIN_VERSION_43: NamedType = NamedType { methods: &[], ..KUBE_VERSION_43 };
static API_VERSIONS_318: NamedType =
    NamedType { name: "chartutil.VersionSet", underlying: Type::STRINGS, methods: SET_METHODS };
static API_VERSIONS_43: NamedType =
    NamedType { name: "common.VersionSet", underlying: Type::STRINGS, methods: SET_METHODS };
static BUILD_INFO: NamedType =
    NamedType { name: "version.BuildInfo", underlying: Type::Struct, methods: &[] };

const KUBE_METHODS: &[Method] =
    &[Method::new("String", &[], kube_string), Method::new("GitVersion", &[], kube_git_version)];
const SET_METHODS: &[Method] = &[Method::new("Has", &[Type::String], has_version)];

/// `.Capabilities`.
pub(super) fn capabilities(
    heap: &mut Heap,
    capabilities: &Capabilities,
    profile: Profile,
) -> Value {
    let (ty, set_ty) = match profile {
        Profile::Helm318 => (&CAPABILITIES_318, &API_VERSIONS_318),
        Profile::Helm43 => (&CAPABILITIES_43, &API_VERSIONS_43),
    };
    let api_versions = capabilities.api_versions.shared().iter().cloned();
    let api_versions = api_versions.map(Value::String).collect();
    let api_versions = heap.new_list_of(Type::Named(set_ty), api_versions);
    let kube_version = KubeVersionObject::new(&capabilities.kube_version, profile);
    let fields = vec![
        ("KubeVersion", Value::object(kube_version)),
        ("APIVersions", Value::List(api_versions)),
        ("HelmVersion", helm_version(profile)),
    ];
    Value::object(Struct::new(ty, fields))
}

/// `.Capabilities.KubeVersion`. Its `String` method is the pointer's: Go finds it where the value
/// stands in its place, and not on the copy that a function gets.
#[derive(Debug)]
struct KubeVersionObject {
    fields: [(&'static str, Value); 3],
    shown: String,
    normalized: String,
    profile: Profile,
}

impl KubeVersionObject {
    fn new(version: &KubeVersion, profile: Profile) -> Self {
        Self {
            fields: [
                ("Version", version.version.as_str().into()),
                ("Major", version.major.as_str().into()),
                ("Minor", version.minor.as_str().into()),
            ],
            shown: version.shown().to_owned(),
            normalized: version.normalized().to_owned(),
            profile,
        }
    }
}

impl Object for KubeVersionObject {
    fn go_type(&self) -> &'static NamedType {
        match self.profile {
            Profile::Helm318 => &KUBE_VERSION_318,
            Profile::Helm43 => &KUBE_VERSION_43,
        }
    }

    fn field(&self, _heap: &mut Heap, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn text(&self) -> Option<String> {
        Some(self.shown.clone())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.to_vec()
    }

    fn by_value(&self) -> Option<Value> {
        let (fields, mut printed) = (self.fields.to_vec(), self.fields.to_vec());
        let ty = match self.profile {
            Profile::Helm318 => &PLAIN_VERSION_318,
            Profile::Helm43 => {
                printed.insert(1, ("normalizedVersion", self.normalized.as_str().into()));
                &PLAIN_VERSION_43
            }
        };
        let plain = Some(Value::object(Struct::new(ty, fields.clone())));
        Some(Value::object(Struct { plain, printed: Some(printed), ..Struct::new(ty, fields) }))
    }
}

/// `.Capabilities.HelmVersion`, the same in all renderings.
fn helm_version(profile: Profile) -> Value {
    static OLD: LazyLock<Value> = LazyLock::new(|| build_info(Profile::Helm318));
    static NEW: LazyLock<Value> = LazyLock::new(|| build_info(Profile::Helm43));
    match profile {
        Profile::Helm318 => OLD.clone(),
        Profile::Helm43 => NEW.clone(),
    }
}

fn build_info(profile: Profile) -> Value {
    let text = |text: &str| Value::from(text);
    let mut fields = vec![
        ("Version", "version", text(profile.helm_version())),
        ("GitCommit", "git_commit", text("")),
        ("GitTreeState", "git_tree_state", text("clean")),
        ("GoVersion", "go_version", text(profile.go_version())),
    ];
    if profile == Profile::Helm43 {
        fields.push(("KubeClientVersion", "kube_client_version", text("v1.37")));
    }
    Value::object(struct_of(&Heap::new(), &BUILD_INFO, fields))
}

#[allow(clippy::unnecessary_wraps, reason = "all bodies have one type")]
fn kube_string(_: &mut Ctx, version: &Value, _: &[Value]) -> Result<Value, FuncError> {
    let shown = version.downcast::<KubeVersionObject>().map(|version| version.shown.as_str());
    Ok(Value::from(shown.unwrap_or_default()))
}

#[allow(clippy::unnecessary_wraps, reason = "all bodies have one type")]
fn kube_git_version(ctx: &mut Ctx, version: &Value, _: &[Value]) -> Result<Value, FuncError> {
    let version = version.downcast::<KubeVersionObject>();
    let field = version.and_then(|version| version.field(&mut ctx.heap, "Version"));
    Ok(field.unwrap_or_default())
}

#[allow(clippy::unnecessary_wraps, reason = "all bodies have one type")]
fn has_version(ctx: &mut Ctx, set: &Value, args: &[Value]) -> Result<Value, FuncError> {
    let wanted: Option<&Str> = args.first().and_then(Value::as_str);
    let has = set
        .as_list()
        .is_some_and(|list| ctx.heap.items(list).iter().any(|item| item.as_str() == wanted));
    Ok(Value::Bool(has))
}
