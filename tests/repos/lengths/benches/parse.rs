use criterion::Criterion;

fn main() {
    Criterion::default();
}
