package fold

// protoc and protoc-gen-go (the version that go.mod requires google.golang.org/protobuf at) are on the PATH. The file is
// named from the root: a program has one registry of such files, by name.
//go:generate protoc -I ../.. --go_out=../.. --go_opt=paths=source_relative processors/fold/state.proto
