package processors

import (
	"fmt"

	"github.com/lovoo/goka"
)

// Stage is the step of processing at which a record failed.
type Stage string

// The stages of processing a record.
const (
	StageDecode   Stage = "decode"   // the bytes cannot be decoded to the topic's type
	StageSession  Stage = "session"  // the record has no valid session ID
	StageRoute    Stage = "route"    // the record is in the wrong partition or under the wrong key, and cannot be looped
	StageHandle   Stage = "handle"   // the handler returned an error or panicked
	StageDeadline Stage = "deadline" // the handler of a deadline returned an error or panicked
)

// RecordError is an error of one record, with the coordinates at which the record was first written. Its text contains the
// key and no part of the value.
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
