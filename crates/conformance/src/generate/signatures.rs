//! What each function is to be called with, so that it succeeds often: sorts of arguments, finer
//! than Go's types.

use std::collections::BTreeMap;

/// How a function is called.
#[derive(Debug)]
pub struct Signature {
    /// Its name.
    pub name: &'static str,
    /// The sorts of its arguments; a trailing `*` (any number) or `?` (may be left out) is part of
    /// the word.
    pub args: Vec<&'static str>,
    /// The sort of its result; empty if the result must not be used as it is.
    pub result: &'static str,
    /// What is done with a result that is another one each time; `@` stands for the call.
    pub wraps: Vec<&'static str>,
}

impl Signature {
    /// Whether a call takes so long that there should be few.
    pub fn is_slow(&self) -> bool {
        matches!(
            self.name,
            "genCA"
                | "genSelfSignedCert"
                | "genSignedCert"
                | "genPrivateKey"
                | "bcrypt"
                | "htpasswd"
                | "derivePassword"
        )
    }

    /// Whether some argument is a time; another one is often taken for the present.
    pub fn takes_time(&self) -> bool {
        self.args.contains(&"Time")
    }
}

/// All signatures; a function may have several.
pub fn all() -> Vec<Signature> {
    TABLE.lines().filter_map(parse).flatten().collect()
}

/// Where the functions are whose result is of a sort.
pub fn by_result(signatures: &[Signature]) -> BTreeMap<&'static str, Vec<usize>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (at, signature) in signatures.iter().enumerate() {
        if !signature.result.is_empty() && signature.wraps.is_empty() && !signature.is_slow() {
            found.entry(signature.result).or_default().push(at);
        }
    }
    found
}

fn parse(line: &'static str) -> Option<Vec<Signature>> {
    let (names, rest) = line.split_once(':')?;
    let (shape, wraps) = rest.split_once(" ! ").unwrap_or((rest, ""));
    let (args, result) = shape.split_once("->")?;
    let one = |name| Signature {
        name,
        args: args.split_whitespace().collect(),
        result: result.trim(),
        wraps: wraps.split(" !! ").map(str::trim).filter(|wrap| !wrap.is_empty()).collect(),
    };
    Some(names.split_whitespace().map(one).collect())
}

const TABLE: &str = r#"
and or: Any Any* -> Any
not: Any -> Bool
len: Sized -> Int
index: List Small -> Any
index: Map Key -> Any
index: Deep Key Key? -> Any
print println: Any* -> Str
printf: Format Any* -> Str
html js urlquery: Any* -> Str
call: Any Any* -> Any
eq: Str Str Str* -> Bool
eq ne lt le gt ge: Int Int -> Bool
eq ne lt le gt ge: Float Float -> Bool
eq ne lt le gt ge: Str Str -> Bool
eq ne lt le gt ge: Num Num -> Bool
eq ne: Any Any -> Bool
include: TemplateName Any -> Str
tpl: TemplateText Context -> Str
required: Str Any -> Any
lookup: ApiVersion Kind Str Str -> Map
toYaml mustToYaml toYamlPretty toToml mustToToml toJson mustToJson toPrettyJson mustToPrettyJson toRawJson mustToRawJson: Any -> Str
toToml mustToToml: Map -> Str
fromYaml: Yaml -> Map
fromYamlArray: YamlList -> List
fromJson mustFromJson: Json -> Map
fromJsonArray: JsonList -> List
fromToml: Toml -> Map
fail: Str -> Str
getHostByName: Str -> Str
mustToDuration: Dur -> Duration
durationSeconds durationMilliseconds durationMicroseconds durationNanoseconds durationMinutes durationHours durationDays durationWeeks: Dur -> Num
durationRoundTo durationTruncateTo: Dur Dur -> Duration
abbrev: Small Str -> Str
abbrevboth: Small Small Str -> Str
add: Num* -> Int64
mul max min biggest: Num Num* -> Int64
sub div mod: Num Num -> Int64
add1: Num -> Int64
add1f floor ceil: Num -> Float
addf: Num* -> Float
subf mulf divf maxf minf: Num Num* -> Float
round: Num Small Float? -> Float
adler32sum sha1sum sha256sum sha512sum b64enc b32enc: Str -> Str
b64dec: B64 -> Str
b32dec: B32 -> Str
ago: Time -> ! regexMatch "^-?([0-9.]+[a-zµ]+)+$" (@)
all any: Any* -> Bool
append push mustAppend mustPush prepend mustPrepend: List Any -> List
first mustFirst last mustLast: List -> Any
rest mustRest initial mustInitial reverse mustReverse compact mustCompact uniq mustUniq: List -> List
concat: List List* -> List
chunk mustChunk: Small List -> List
without mustWithout: List Any* -> List
has mustHas: Any List -> Bool
slice mustSlice: List Small? Small? -> List
sortAlpha: List -> StrList
toStrings: List -> StrList
join: Str List -> Str
list tuple: Any* -> List
atoi: NumText -> Int
base dir clean ext osBase osDir osClean osExt: Path -> Str
isAbs osIsAbs: Path -> Bool
bcrypt: Str -> ! len (@) !! hasPrefix "$2a$10$" (@)
htpasswd: Str Str -> ! len (@) !! (@) | splitList ":" | first
derivePassword: Small PasswordKind Str Str Str -> Str
encryptAES: Str Str -> ! len (@) !! typeOf (@)
decryptAES: AesKey AesText -> Str
buildCustomCert: CertText KeyText -> ! (@).Cert !! (@).Key | len !! (@) | typeOf
genPrivateKey: KeyKind -> ! regexMatch "^-----BEGIN (EC |RSA |DSA )?PRIVATE KEY-----\n" (@) !! (@) | splitList "\n" | first
genCA: Str Days -> ! (@).Cert | hasPrefix "-----BEGIN CERTIFICATE-----" !! (@) | typeOf !! (@).Key | splitList "\n" | first
genCAWithKey: Str Days PrivateKey -> ! (@).Cert | hasPrefix "-----BEGIN CERTIFICATE-----" !! (@).Key !! (@) | kindOf
genSelfSignedCert: Str Ips Names Days -> ! (@).Cert | hasPrefix "-----BEGIN CERTIFICATE-----" !! (@) | typeOf
genSelfSignedCertWithKey: Str Ips Names Days PrivateKey -> ! (@).Cert | hasSuffix "-----END CERTIFICATE-----\n" !! (@).Key
genSignedCert: Str Ips Names Days CA -> ! (@).Cert | hasPrefix "-----BEGIN CERTIFICATE-----"
genSignedCertWithKey: Str Ips Names Days CA PrivateKey -> ! (@).Cert | hasPrefix "-----BEGIN CERTIFICATE-----" !! (@).Key
camelcase snakecase kebabcase initials title untitle swapcase: Words -> Str
upper lower trim nospace regexQuoteMeta: Str -> Str
cat: Any* -> Str
quote squote: Any* -> Str
coalesce: Any* -> Any
contains hasPrefix hasSuffix: Str Str -> Bool
date: Layout Time -> Str
dateInZone date_in_zone: Layout Time Zone -> Str
htmlDate: Time -> Str
htmlDateInZone: Time Zone -> Str
dateModify date_modify mustDateModify must_date_modify: DurText RealTime -> RealTime
toDate mustToDate: Layout DateText -> RealTime
toDate mustToDate: DayLayout Day -> RealTime
unixEpoch: RealTime -> Str
now: -> ! (@).Location !! kindOf (@) !! typeOf (@) !! (@).Format "MST" !! gt (@).Year 2020
deepCopy mustDeepCopy: Any -> Any
deepEqual: Any Any -> Bool
default: Any Any? -> Any
dict: Key Any -> Map
dict: Key Any Key Any -> Map
dict: Any* -> Map
dig: Key Any Map -> Any
dig: Key Key Any Deep -> Any
duration: Dur -> Str
durationRound: Dur -> Str
empty: Any -> Bool
float64: Num -> Float
int: Num -> Int
int64: Num -> Int64
toDecimal: NumText -> Int64
get: Map Key -> Any
set: OwnMap Key Plain -> Map
unset: OwnMap Key -> Map
hasKey: Map Key -> Bool
pluck: Key Map Map* -> List
keys: Map Map* -> ! (@) | sortAlpha !! len (@) !! typeOf (@)
values: Map -> ! len (@) !! (@) | toStrings | sortAlpha !! typeOf (@)
pick omit: Map Key Key* -> Map
merge mustMerge mergeOverwrite mustMergeOverwrite: OwnMap Map Map* -> Map
hello: -> Str
kindIs: KindName Any -> Bool
kindOf typeOf: Any -> Str
typeIs typeIsLike: TypeName Any -> Bool
indent nindent: Small Str -> Str
plural: Str Str Small -> Str
randAlpha randAlphaNum randNumeric randAscii: Small -> ! len (@) !! kindOf (@) !! regexMatch "^[ -~]*$" (@)
randBytes: Small -> ! (@) | b64dec | len !! len (@)
randInt: Small Small -> ! typeOf (@) !! lt (@) 1000
regexMatch mustRegexMatch: Regex Str -> Bool
regexFind mustRegexFind: Regex Str -> Str
regexFindAll mustRegexFindAll regexSplit mustRegexSplit: Regex Str Small -> StrList
regexReplaceAll mustRegexReplaceAll: Regex Str Replacement -> Str
regexReplaceAllLiteral mustRegexReplaceAllLiteral: Regex Str Replacement -> Str
repeat: Small Str -> Str
replace: Str Str Str -> Str
semver: Semver -> Version
semverCompare: Constraint Semver -> Bool
seq: Small* -> Str
seq: Small Small Small -> Str
shuffle: Str -> ! len (@) !! kindOf (@)
split: Separator Str -> Map
splitn: Separator Small Str -> Map
splitList: Separator Str -> StrList
substr: Small Small Str -> Str
ternary: Any Any Bool -> Any
toString: Any -> Str
trimAll trimall trimPrefix trimSuffix: Str Str -> Str
trunc: Small Str -> Str
until: Small -> NumList
untilStep: Small Small Small -> NumList
urlJoin: UrlMap -> Str
urlParse: Url -> UrlMap
uuidv4: -> ! len (@) !! regexMatch "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$" (@)
wrap: Small Words -> Str
wrapWith: Small Str Words -> Str
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_library_has_a_signature_and_no_other() {
        let known: std::collections::BTreeSet<_> = all().iter().map(|s| s.name).collect();
        let names = crate::report::functions();
        let missing: Vec<_> = names.iter().filter(|name| !known.contains(*name)).collect();
        let invented: Vec<_> = known.iter().filter(|name| !names.contains(*name)).collect();
        assert!(missing.is_empty() && invented.is_empty(), "{missing:?} {invented:?}");
    }
}
