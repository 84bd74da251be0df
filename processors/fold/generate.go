package fold

// protoc and protoc-gen-go (the version that go.mod requires google.golang.org/protobuf at) are on the PATH.
//go:generate protoc --go_out=. --go_opt=paths=source_relative state.proto
