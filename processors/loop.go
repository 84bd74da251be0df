package processors

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

var (
	errNotOwned  = errors.New("key does not belong to the partition, even after the loop topic")
	errNoSource  = errors.New("loop record lacks its source coordinates")
	errNoInput   = errors.New("loop record comes from a topic that is not an input of the group")
	errLoopBytes = errors.New("record under a wrong key is too large for the loop topic")
)

// The headers of a record on the loop topic. A missing source key is a null key.
const (
	loopPrefix    = "turntable.source."
	loopTopic     = loopPrefix + "topic"
	loopPartition = loopPrefix + "partition"
	loopOffset    = loopPrefix + "offset"
	loopTimestamp = loopPrefix + "timestamp"
	loopKey       = loopPrefix + "key"
)

// loopCodec is the codec of the loop topic. It also holds the group's inputs, because the codec is the only part of an
// edge that Goka returns: New needs them to build the edges again, bound to its options.
type loopCodec struct {
	codec.Codec[[]byte]
	inputs []Source
}

// loopEdge is the edge of the group's loop topic, through which records reach the key and partition they belong to. This
// is necessary because Goka writes the table of the partition that a record was read from, but the changelog partition of
// its key. The handlers of the inputs handle looped records, with the coordinates of the original topic.
func loopEdge(inputs []Source, set *settings) goka.Edge {
	sources := make(map[string]source, len(inputs))
	for _, s := range inputs {
		sources[s.in.name()] = s.in
	}
	return goka.Loop(loopCodec{codec.Bytes(), inputs}, func(ctx goka.Context, msg any) {
		receiveLoop(ctx, set, msg, sources)
	})
}

func receiveLoop(ctx goka.Context, set *settings, msg any, sources map[string]source) {
	if hasEnded(ctx) {
		return
	}
	d, _, ok := decoded[[]byte](msg)
	c := newContext(ctx, set, d.Raw)
	r := &c.record
	if !ok {
		fail(ctx, r.fail(StageDecode, fmt.Errorf("%w: got %T", ErrType, msg)))
	}
	origin, err := r.origin()
	if err != nil {
		deadLetter(ctx, c, StageRoute, err)
		return
	}
	c.record = origin
	in := sources[r.topic]
	r.confidential = in != nil && in.confidential()
	switch err := CheckSession(ctx.Key()); {
	case in == nil:
		deadLetter(ctx, c, StageRoute, errNoInput)
	case err != nil:
		deadLetter(ctx, c, StageSession, err)
	case !runtimeapi.Owns(ctx, ctx.Key()):
		deadLetter(ctx, c, StageRoute, errNotOwned)
	default:
		in.rerouted(ctx, c)
	}
}

// reroute sends a record to the group's loop topic under the right key.
func reroute(ctx goka.Context, c *Context, session string) {
	r := &c.record
	headers := r.loopHeaders()
	if recordBytes(session, r.raw, headers) > c.settings.limitOf(c.settings.loop) {
		deadLetter(ctx, c, StageRoute, errLoopBytes)
		return
	}
	ctx.Loopback(session, codec.Encoded(r.raw), goka.WithCtxEmitHeaders(headers))
}

// loopHeaders returns the headers of the record on the loop topic: its own, and where it was first written.
func (r *record) loopHeaders() goka.Headers {
	headers := make(goka.Headers, len(r.headers)+5)
	maps.Copy(headers, r.headers)
	headers[loopTopic] = []byte(r.topic)
	headers[loopPartition] = strconv.AppendInt(nil, int64(r.partition), 10)
	headers[loopOffset] = strconv.AppendInt(nil, r.offset, 10)
	headers[loopTimestamp] = strconv.AppendInt(nil, r.timestamp.UnixMilli(), 10)
	delete(headers, loopKey)
	if !r.nullKey {
		headers[loopKey] = []byte(r.key)
	}
	return headers
}

// origin returns a record of the loop topic as it was first written.
func (r *record) origin() (record, error) {
	topic, named := r.headers[loopTopic]
	partition, err1 := strconv.ParseInt(string(r.headers[loopPartition]), 10, 32)
	offset, err2 := strconv.ParseInt(string(r.headers[loopOffset]), 10, 64)
	ms, err3 := strconv.ParseInt(string(r.headers[loopTimestamp]), 10, 64)
	if !named || err1 != nil || err2 != nil || err3 != nil {
		return record{}, errNoSource
	}
	key, keyed := r.headers[loopKey]
	own := make(goka.Headers, len(r.headers))
	for name, value := range r.headers {
		if !strings.HasPrefix(name, loopPrefix) {
			own[name] = value
		}
	}
	return record{
		group: r.group, topic: string(topic), partition: int32(partition), offset: offset,
		timestamp: time.UnixMilli(ms), key: string(key), nullKey: !keyed, headers: own, raw: r.raw,
	}, nil
}
