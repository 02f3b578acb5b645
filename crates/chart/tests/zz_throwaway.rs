//! Throwaway.
use catamaran_chart::*;
#[test]
fn created() {
    let chart = Chart::load(std::path::Path::new("/tmp/hc/memcached")).unwrap().compile().unwrap();
    for (p, h) in [(Profile::Helm318, "helm3"), (Profile::Helm43, "helm")] {
        for vals in [
            "{}",
            r#"{"replicaCount":3,"ingress":{"enabled":true,"className":"x","tls":[{"secretName":"a","hosts":["b"]}]},"autoscaling":{"enabled":true},"httpRoute":{"enabled":true},"resources":{"limits":{"cpu":1}},"nodeSelector":{"a":"b"}}"#,
        ] {
            std::fs::write("/tmp/v.json", vals).unwrap();
            let out = std::process::Command::new(format!(
                "/root/.cache/catamaran/tools/bin-a5bbcb36bf28/{h}"
            ))
            .args(["template", "rel", "/tmp/hc/memcached", "-f", "/tmp/v.json"])
            .output()
            .unwrap();
            let values = serde_json::from_str(vals).unwrap();
            let caps = Capabilities::offline(p);
            let rel = ReleaseFacts {
                name: "rel".into(),
                namespace: "default".into(),
                revision: 1,
                is_install: true,
            };
            let l = Lookups::offline();
            let input = RenderInput {
                values: &values,
                release: &rel,
                capabilities: &caps,
                profile: p,
                lookups: &l,
                clock: std::time::UNIX_EPOCH,
                seed: 1,
                budget: Budget::default(),
            };
            let r = chart.render(&input).unwrap();
            println!("{p:?} equal: {}", r.template_text().as_bytes() == out.stdout);
            let t = std::time::Instant::now();
            for _ in 0..100 {
                chart.render(&input).unwrap();
            }
            println!("{:?} each (debug build)", t.elapsed() / 100);
        }
    }
}
