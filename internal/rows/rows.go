// Package rows has what the group tables of all capabilities share: the format of their rows, and the codec that tells the runtime
// the deadlines of rows. A row is one Protobuf message per key, encoded deterministically. It carries a version, so that builds that
// do not support it can reject it, and its earliest deadline in a field of its own. The folders below have the messages, one for each
// capability. Users read a table through the views of its capability.
package rows

// protoc and protoc-gen-go (the version of google.golang.org/protobuf that go.mod requires) must be on the PATH. Each file is named by
// its path in the module, because a program that links two files of one name panics at startup.
//go:generate sh -c "protoc -I ../.. --go_out=../.. --go_opt=paths=source_relative ../../internal/rows/*/state.proto"
