package processors

import (
	"errors"
	"maps"
	"strconv"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

// maxReason is the largest reason of a dead letter, in bytes; longer ones are truncated.
const maxReason = 1024

// DeadLetters returns the output edge of a group's dead-letter topic, "{group}-dlq". Edges includes it.
func DeadLetters(group goka.Group) goka.Edge {
	return goka.Output(deadLetterStream(group), codec.Bytes())
}

// Letter is a record that is sent to the dead-letter topic by Context.DeadLetterOther. A value that is too large for a
// record is truncated, and its original size is in the header error.truncated.
type Letter struct {
	// Topic, Partition and Offset are the coordinates at which the record was first written.
	Topic     string
	Partition int32
	Offset    int64
	// Key is the record's key. NullKey distinguishes a Kafka null from an empty key.
	Key     string
	NullKey bool
	// Value is the record's bytes; nil is a tombstone.
	Value []byte
	// Headers are the record's own headers. They are kept, except those with the name of an error header.
	Headers goka.Headers
	// Confidential drops value and headers; the size of the value is in the header error.truncated.
	Confidential bool
	// Reason is why the record is dead-lettered, in a few words. It must not quote the record. Reasons over 1024 bytes
	// are truncated.
	Reason string
}

func (r *record) letter(reason string) Letter {
	return Letter{
		Topic: r.topic, Partition: r.partition, Offset: r.offset,
		Key: r.key, NullKey: r.nullKey, Value: r.raw, Headers: r.headers,
		Confidential: r.confidential, Reason: reason,
	}
}

// output returns the letter as a record of the dead-letter topic, truncated to the size limit of a record. ours says that
// our producer sends it, which can send a null key.
func (l Letter) output(s *settings, ours bool) output {
	headers := make(goka.Headers, len(l.Headers)+len(errorHeaders)+1)
	if !l.Confidential {
		maps.Copy(headers, withoutPrivate(l.Headers))
	}
	for _, name := range errorHeaders {
		delete(headers, name)
	}
	if l.Confidential && l.Value != nil {
		headers[topics.HeaderErrorTruncated] = strconv.AppendInt(nil, int64(len(l.Value)), 10)
		l.Value = nil
	}
	headers[topics.HeaderErrorReason] = []byte(cleanReason(l.Reason))
	headers[topics.HeaderErrorSourceTopic] = []byte(l.Topic)
	headers[topics.HeaderErrorSourcePartition] = strconv.AppendInt(nil, int64(l.Partition), 10)
	headers[topics.HeaderErrorSourceOffset] = strconv.AppendInt(nil, l.Offset, 10)
	headers[topics.HeaderErrorGroup] = []byte(s.group)

	key, value := shrink(l.Key, l.Value, headers, s.limitOf(string(s.deadLetters)))
	if ours && l.NullKey {
		headers[runtimeapi.HeaderNullKey] = []byte{} // our producer removes it; a plain Goka producer would send it
	}
	out := output{stream: s.deadLetters, key: key, headers: headers, rejected: &RecordError{
		Group: s.group, Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Key: l.Key,
		Stage: StageHandle, Err: errors.New(l.Reason),
	}}
	if value != nil {
		out.value = codec.Encoded(value)
	}
	return out
}

// cleanReason makes a reason printable: valid UTF-8, without control characters, truncated to maxReason.
func cleanReason(reason string) string {
	return truncate.Text(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "?")), maxReason)
}
