//! Compiles the .proto files in Rust (protox), so that no protoc is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors =
        protox::compile(["agfs/v1/model.proto", "agfs/v1/service.proto", "agfs/v1/journal.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".agfs.v1.Chunk.data").compile_fds(descriptors)?;
    Ok(())
}
