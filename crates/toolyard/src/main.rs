use std::process::ExitCode;

fn main() -> ExitCode {
    toolyard::run()
}
