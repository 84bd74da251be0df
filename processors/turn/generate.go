package turn

// protoc and protoc-gen-go (the version that go.mod requires google.golang.org/protobuf at) are on the PATH. The file is
// named by its path in the module: a program in which two files have one name does not start.
//go:generate protoc -I ../.. --go_out=../.. --go_opt=paths=source_relative processors/turn/state.proto
