package processors

import (
	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// Repartitioned exempts an input from the rule that all inputs have the same number of partitions. New reads all of its
// partitions, including partitions that are added later, and sends every record through the group's loop topic to the
// partition of its session; the handler sees the topic, partition and offset at which the record was first written. Use it
// for topics that other applications create. It costs one more hop and one more write, even if the numbers of partitions
// are equal.
//
// At least one input of a group must not be Repartitioned. Under a plain goka.NewProcessor the option has no effect.
func Repartitioned[T any]() EdgeOption[T] {
	return func(in *input[T]) { in.loose = true }
}

// repartitioned returns the inputs that Goka does not read, because they may have any number of partitions.
func repartitioned(inputs []Source, s *settings) cut.Repartitioned {
	found := cut.Repartitioned{}
	for _, in := range inputs {
		if outgoing := in.in.repartition(s); outgoing != nil {
			found[in.in.name()] = outgoing
		}
	}
	return found
}

func (in *input[T]) repartition(s *settings) cut.Repartition {
	if !in.loose {
		return nil
	}
	return func(m *sarama.ConsumerMessage) cut.Outgoing {
		r := consumed(s.group, m)
		r.confidential = in.secret
		session, err := in.sessionBeforeLoop(&r)
		if err != nil {
			return r.deadLettered(s, StageSession, err)
		}
		headers := r.loopHeaders()
		if recordBytes(session, r.raw, headers) > s.limitOf(s.loop) {
			return r.deadLettered(s, StageRoute, errLoopBytes)
		}
		return cut.Outgoing{Topic: s.loop, Key: session, Value: r.raw, Headers: headers}
	}
}

// sessionBeforeLoop returns the session of a record that has not been decoded. For a value that cannot be decoded it is the
// record's key: the loop's callback dead-letters the record. The error is that of a panic of the KeyedBy function.
func (in *input[T]) sessionBeforeLoop(r *record) (session string, err error) {
	if in.session == nil || r.raw == nil {
		return r.key, nil
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			err = Recovered(thrown)
		}
	}()
	d := in.topic.Codec().Unmarshal(r.raw)
	if d.Err != nil {
		return r.key, nil
	}
	return in.sessionOf(r, d), nil
}

// consumed returns a record that Goka has not read. If a header's name is repeated, the last one counts, as in Goka.
func consumed(group goka.Group, m *sarama.ConsumerMessage) record {
	headers := make(goka.Headers, len(m.Headers))
	for _, h := range m.Headers {
		headers[string(h.Key)] = h.Value
	}
	_, null := headers[runtimeapi.HeaderNullKey]
	return record{
		group: group, topic: m.Topic, partition: m.Partition, offset: m.Offset, timestamp: m.Timestamp,
		key: string(m.Key), nullKey: null && len(m.Key) == 0, headers: withoutPrivate(headers), raw: m.Value,
	}
}

// deadLettered returns the record as its dead letter.
func (r *record) deadLettered(s *settings, stage Stage, cause error) cut.Outgoing {
	out := r.letter(cause.Error()).output(s, true)
	s.onDeadLetter(r.fail(stage, cause))
	sent := cut.Outgoing{Topic: string(out.stream), Key: out.key, Headers: out.headers}
	if out.value != nil {
		sent.Value = out.value.(codec.Encoded)
	}
	return sent
}
