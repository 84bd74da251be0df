package processors

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// record is a record as it was first written, also if it was read from the loop topic.
type record struct {
	group     goka.Group
	topic     string
	partition int32
	offset    int64
	timestamp time.Time
	key       string // the original key
	nullKey   bool   // the key was a Kafka null, not an empty string
	headers   goka.Headers
	raw       []byte // nil is a tombstone

	confidential bool // value and headers must not be dead-lettered
}

func recordOf(ctx goka.Context, raw []byte) record {
	headers := ctx.Headers()
	_, null := headers[runtimeapi.HeaderNullKey]
	null = null && ctx.Key() == ""
	return record{
		group:     ctx.Group(),
		topic:     string(ctx.Topic()),
		partition: ctx.Partition(),
		offset:    ctx.Offset(),
		timestamp: ctx.Timestamp(),
		key:       ctx.Key(),
		nullKey:   null,
		headers:   withoutPrivate(headers),
		raw:       raw,
	}
}

func (r *record) fail(stage Stage, err error) *RecordError {
	return &RecordError{
		Group: r.group, Topic: r.topic, Partition: r.partition, Offset: r.offset, Key: r.key, Stage: stage, Err: err,
	}
}

// withoutPrivate returns headers without those that are never sent to the broker. It copies only if there are any.
func withoutPrivate(headers goka.Headers) goka.Headers {
	private := 0
	for name := range headers {
		if strings.HasPrefix(name, "\x00") {
			private++
		}
	}
	if private == 0 {
		return headers
	}
	public := make(goka.Headers, len(headers)-private)
	for name, value := range headers {
		if !strings.HasPrefix(name, "\x00") {
			public[name] = value
		}
	}
	return public
}

// maxSessionID is the largest session ID, in bytes. Every record of the session and its table row contain it.
const maxSessionID = 1024

// reservedKey is where Goka's storage keeps its changelog offset, in the same key space.
const reservedKey = "__offset"

// The errors of CheckSession.
var (
	errSessionMissing  = errors.New("session id is missing")
	errSessionLong     = fmt.Errorf("session id is longer than %d bytes", maxSessionID)
	errSessionNUL      = errors.New("session id contains NUL")
	errSessionUTF8     = errors.New("session id is not UTF-8")
	errSessionReserved = errors.New("session id is reserved")
)

// CheckSession returns an error if id cannot be a session ID: if it is empty, longer than 1024 bytes, not UTF-8, contains
// NUL, or is "__offset", which Goka's storage uses. The error does not quote the ID. Records of such a session are
// dead-lettered; a program that accepts sessions from outside should check the ID first.
func CheckSession(id string) error {
	switch {
	case id == "":
		return errSessionMissing
	case len(id) > maxSessionID:
		return errSessionLong
	case strings.IndexByte(id, 0) >= 0: // it separates the parts of a row
		return errSessionNUL
	case !utf8.ValidString(id):
		return errSessionUTF8
	case id == reservedKey:
		return errSessionReserved
	default:
		return nil
	}
}

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
