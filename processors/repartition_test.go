package processors_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

var strays = topics.New(topics.Spec{Name: "strays"}, codec.JSON[asked]())

// Records of an input with another number of partitions reach their session's handler with their own coordinates; those
// that cannot are dead-lettered like any others.
func TestRepartitionedInputIsReadFromAllItsPartitions(t *testing.T) {
	const partitions = 4
	for _, count := range []int32{1, 4, 12} {
		t.Run(strconv.Itoa(int(count)), func(t *testing.T) {
			f := newField(t, partitions)
			_, err := kadm.NewClient(f.client).CreateTopic(t.Context(), count, 1, nil, strays.Name())
			require.NoError(t, err)
			handle := func(c *processors.Context, in codec.Decoded[asked]) error {
				if err := c.SetValue("seen"); err != nil {
					return err
				}
				return processors.Emit(c, answers, c.Key(), strings.Join([]string{
					c.Topic(), strconv.Itoa(int(c.Partition())), strconv.FormatInt(c.Offset(), 10), in.Value.Text,
				}, " "), nil)
			}
			session := func(a asked) *string {
				if a.Text == "panic" {
					panic("secret")
				}
				return a.Session
			}
			edges := processors.Edges(group,
				processors.Input(strays, handle, processors.KeyedBy(session), processors.Repartitioned[asked]()),
				processors.Input(asks, handle, processors.KeyedBy(sessionOf)))
			f.start(goka.DefineGroup(group, append(edges, goka.Persist(codec.String()), goka.Output(answers.Stream(), answers.Codec()))...),
				processors.WithMaxRecordBytes(8<<10))

			var want []string
			send := func(n int32, key, value []byte) *kgo.Record {
				r := &kgo.Record{Topic: strays.Name(), Partition: n, Key: key, Value: value}
				require.NoError(t, f.client.ProduceSync(t.Context(), r).FirstErr())
				return r
			}
			for n := range count {
				s := "s-" + strconv.Itoa(int(n))
				send(n, nil, quote(s, "hi"))
				want = append(want, "strays "+strconv.Itoa(int(n))+" 0 hi")
			}
			last := count - 1
			reasons := map[string]string{}
			for value, reason := range map[string]string{
				"{secret": "", `{"text":"x"}`: "session id is missing", string(quote("s", "panic")): "panic",
				string(quote("s", strings.Repeat("x", 8<<10))): "too large for the loop topic",
			} {
				r := send(last, nil, []byte(value))
				reasons[strconv.FormatInt(r.Offset, 10)] = reason
			}
			tombstone := send(last, []byte("s"), nil)
			want = append(want, "strays "+strconv.Itoa(int(last))+" "+strconv.FormatInt(tombstone.Offset, 10)+" ")

			var got []string
			for _, r := range f.take("answers", len(want)) {
				got = append(got, string(r.Value))
			}
			require.ElementsMatch(t, want, got)
			for _, r := range f.take("floor-dlq", len(reasons)) {
				require.Nil(t, r.Key)
				require.Equal(t, strays.Name(), header(r, topics.HeaderErrorSourceTopic))
				require.Equal(t, strconv.Itoa(int(last)), header(r, topics.HeaderErrorSourcePartition))
				require.Contains(t, header(r, topics.HeaderErrorReason), reasons[header(r, topics.HeaderErrorSourceOffset)])
				require.Equal(t, "floor", header(r, topics.HeaderErrorGroup))
				require.Empty(t, header(r, "turntable.source.topic"))
			}
		})
	}
}

func TestGraphWithoutACopartitionedInputIsRejected(t *testing.T) {
	edges := processors.Edges(group, processors.Input(strays, func(*processors.Context, codec.Decoded[asked]) error { return nil },
		processors.Repartitioned[asked]()))
	_, err := processors.New([]string{"a:1"}, goka.DefineGroup(group, edges...))
	require.ErrorIs(t, err, processors.ErrConfig)
	require.ErrorContains(t, err, "Repartitioned")
}
