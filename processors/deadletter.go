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

// maxReason bounds the reason of a dead letter, in bytes.
const maxReason = 1024

// DeadLetters is the output edge of a group's dead-letter topic, "{group}-dlq". Edges has it already.
func DeadLetters(group goka.Group) goka.Edge {
	return goka.Output(deadLetterStream(group), codec.Bytes())
}

func deadLetterStream(group goka.Group) goka.Stream { return goka.Stream(string(group) + "-dlq") }

// Letter is a record on its way to the dead-letter topic.
type Letter struct {
	// Topic, Partition and Offset say where the record was written first.
	Topic     string
	Partition int32
	Offset    int64
	// Key is the record's key. NullKey keeps a Kafka null apart from an empty key.
	Key     string
	NullKey bool
	// Value is the record's bytes; nil is a tombstone.
	Value []byte
	// Headers are the record's own headers. They are kept, except where an error header has the same name.
	Headers goka.Headers
	// Confidential leaves value and headers out; how large the value was stays.
	Confidential bool
	// Reason says why, in a few words and without quoting the record.
	Reason string
}

func (r *record) letter(reason string) Letter {
	return Letter{
		Topic: r.topic, Partition: r.partition, Offset: r.offset,
		Key: r.key, NullKey: r.nullKey, Value: r.raw, Headers: r.headers,
		Confidential: r.confidential, Reason: reason,
	}
}

// deadLetter sends a record that reaches no handler, or whose handler panicked.
func deadLetter(ctx goka.Context, c *Context, stage Stage, cause error) {
	out := c.record.letter(cause.Error()).output(ctx, c.settings)
	out.rejected = c.record.fail(stage, cause)
	out.perform(ctx, c.settings)
}

// output is the letter as a record of the dead-letter topic, cut where it would be refused for its size.
func (l Letter) output(ctx goka.Context, s *settings) output {
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
	headers[topics.HeaderErrorGroup] = []byte(ctx.Group())

	key, value := shrink(l.Key, l.Value, headers, s.recordBytes)
	if _, ok := ctx.(runtimeapi.Runtime); ok && l.NullKey {
		headers[runtimeapi.HeaderNullKey] = []byte{} // the producer takes it off; a plain Goka's would send it
	}
	out := output{stream: s.deadLetters, key: key, headers: headers, rejected: &RecordError{
		Group: ctx.Group(), Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Key: l.Key,
		Stage: StageHandle, Err: errors.New(l.Reason),
	}}
	if value != nil {
		out.value = codec.Decoded[[]byte]{Raw: value, Err: errEncoded}
	}
	return out
}

// cleanReason makes a text fit for a header that people read in terminals.
func cleanReason(reason string) string {
	return truncate.Text(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "?")), maxReason)
}
