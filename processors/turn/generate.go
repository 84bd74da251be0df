package turn

// Requires protoc, and protoc-gen-go of the same version as google.golang.org/protobuf in go.mod, on the PATH. The file is
// named by its path in the module, because a program that registers two .proto files with one name panics on startup.
//go:generate protoc -I ../.. --go_out=../.. --go_opt=paths=source_relative processors/turn/state.proto
