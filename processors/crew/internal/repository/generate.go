package repository

// protoc and protoc-gen-go (the version of google.golang.org/protobuf that go.mod requires) must be on the PATH. The file
// is named by its path in the module because a program that links two files of one name panics at startup.
//go:generate protoc -I ../../../.. --go_out=../../../.. --go_opt=paths=source_relative processors/crew/internal/repository/state.proto
