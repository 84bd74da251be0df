package turnrow

// This needs protoc and protoc-gen-go on the PATH, the latter in the version of google.golang.org/protobuf in go.mod. The
// file is named relative to the module's root, because a program registers all proto files by name.
//go:generate protoc -I ../../../../.. --go_out=../../../../.. --go_opt=paths=source_relative processors/fold/invoke/internal/turnrow/state.proto
