// Package mailbox is what the three groups of crews have in common. Each group reads one topic, its inputs, and writes to the
// inputs of the others. So the order of a key's records in one partition decides everything:
//
//   - An input is applied once. A sender numbers its inputs, and the receiver knows the last number of each sender; inputs
//     without a sender are known by their IDs for a while.
//   - The time of a step is that of its record, and never goes back. A repeated step has the same results.
//   - A deadline only writes an input, crewbody.Due, which does what is due when it is read. A crash between the two cannot make the
//     row and what it wrote differ.
//
// Inputs, actions, events and gates have IDs that are derived from the row and its counters, so a repeated step writes the
// same records again.
package mailbox

// protoc and protoc-gen-go (the version of google.golang.org/protobuf that go.mod requires) must be on the PATH.
//go:generate sh -c "protoc -I ../../../.. --go_out=../../../.. --go_opt=paths=source_relative ../../../../processors/crew/internal/*/state.proto"

import "errors"

// ErrConfig is wrapped by the errors about a configuration of one of the groups.
var ErrConfig = errors.New("crew: invalid configuration")
