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

// maxSessionID bounds a session id. Every record of the session and the row of the table carry it.
const maxSessionID = 1024

// record is what an edge knows of a record: as it was written first, also where it came through the loop topic.
type record struct {
	group     goka.Group
	topic     string
	partition int32
	offset    int64
	timestamp time.Time
	key       string // as it came
	nullKey   bool   // the key was a Kafka null, not an empty string
	headers   goka.Headers
	raw       []byte // nil is a tombstone

	confidential bool // its value and headers are nobody else's
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

// withoutPrivate leaves out the headers that never reach the broker. It copies only where there is one.
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

// reservedKey is where Goka's storage keeps its changelog offset, in the same key space.
const reservedKey = "__offset"

// What can be wrong with a session id.
var (
	errSessionMissing  = errors.New("session id is missing")
	errSessionLong     = fmt.Errorf("session id is longer than %d bytes", maxSessionID)
	errSessionNUL      = errors.New("session id contains NUL")
	errSessionUTF8     = errors.New("session id is not UTF-8")
	errSessionReserved = errors.New("session id is reserved")
)

// CheckSession says what is wrong with a session id, without quoting it. Records of such a session go to the dead-letter
// topic: who lets sessions in refuses it first.
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
