package processors

import (
	"fmt"

	"github.com/lovoo/goka"
)

// Stage says where in an edge a record failed.
type Stage string

// The stages of an edge.
const (
	StageDecode   Stage = "decode"   // the bytes are no value of the topic's type
	StageSession  Stage = "session"  // the record has no usable session id
	StageRoute    Stage = "route"    // the record is neither where its key belongs nor can be sent there
	StageHandle   Stage = "handle"   // the handler returned an error or panicked
	StageDeadline Stage = "deadline" // the handler of a deadline returned an error or panicked
)

// RecordError is an error of one record, with the coordinates at which the record was written first. It names no part
// of the record's value.
type RecordError struct {
	Group     goka.Group
	Topic     string
	Partition int32
	Offset    int64
	Key       string
	Stage     Stage
	Err       error
}

// Error names group, record and stage, then the cause.
func (e *RecordError) Error() string {
	return fmt.Sprintf("processors: group %s, record %s/%d@%d, key %q, %s: %v",
		e.Group, e.Topic, e.Partition, e.Offset, e.Key, e.Stage, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }
