package processors_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// acceptLess creates a topic, or changes it, so that it accepts only small records.
func (f *field) acceptLess(topic string, bytes string) {
	f.t.Helper()
	admin := kadm.NewClient(f.client)
	_, err := admin.CreateTopic(f.t.Context(), 1, 1, nil, topic)
	if err != nil {
		require.ErrorIs(f.t, err, kerr.TopicAlreadyExists)
	}
	_, err = admin.AlterTopicConfigs(f.t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &bytes}}, topic)
	require.NoError(f.t, err)
}

// denyConfigs lets the broker return no topic's configuration.
func (f *field) denyConfigs() {
	f.broker.Cluster().ControlKey(int16(kmsg.DescribeConfigs), func(request kmsg.Request) (kmsg.Response, error, bool) {
		f.broker.Cluster().KeepControl()
		resp := request.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, r := range request.(*kmsg.DescribeConfigsRequest).Resources {
			denied := kmsg.NewDescribeConfigsResponseResource()
			denied.ResourceType, denied.ResourceName, denied.ErrorCode = r.ResourceType, r.ResourceName, kerr.TopicAuthorizationFailed.Code
			resp.Resources = append(resp.Resources, denied)
		}
		return resp, nil, true
	})
}

// A record that its topic does not accept ends as a dead letter of its cause, whatever it is, and blocks no other session. Where
// the brokers do not tell what topics accept, the processor learns it from at most two refusals.
func TestRecordThatItsTopicRefusesBlocksNothing(t *testing.T) {
	const accepted = 10_000
	large := strings.Repeat("x", accepted)
	for _, guarantee := range []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce} {
		for _, kind := range []string{"output", "raw output", "row", "part"} {
			for name, restarts := range map[string]int32{"described": 0, "not permitted": 2} {
				t.Run(string(guarantee)+"/"+kind+"/"+name, func(t *testing.T) {
					t.Parallel()
					f := newField(t, 1)
					less := "answers"
					if kind == "row" || kind == "part" {
						less = "floor-table"
					}
					f.acceptLess(less, "10012")
					if restarts > 0 {
						f.denyConfigs()
					}
					core, logs := observer.New(zap.InfoLevel)
					var restarted atomic.Int32
					f.start(graphOf(func(c *processors.Context, in codec.Decoded[asked]) error {
						text := in.Value.Text
						if text == "large" {
							text = large
						}
						row := "row"
						switch kind {
						case "row":
							row = text
						case "part":
							if err := c.SetPart(1, []byte(text)); err != nil {
								return err
							}
						case "raw output":
							if err := c.EmitWithID(answers.Stream(), c.Key(), text, "id-"+c.CauseID()); err != nil {
								return err
							}
							return c.SetValue(row)
						}
						if err := c.SetValue(row); err != nil {
							return err
						}
						if kind == "output" {
							return processors.Emit(c, answers, c.Key(), text, nil)
						}
						return processors.Emit(c, answers, c.Key(), "answer", nil)
					}, codec.String()),
						processors.WithGuarantee(guarantee), processors.WithInstance("a"), processors.WithLogger(zap.New(core)),
						processors.WithMetrics(processors.Metrics{Restart: func(error, time.Duration) { restarted.Add(1) }}))
					f.put(0, []byte("s-1"), quote("s-1", "large"))
					for _, session := range []string{"s-2", "s-3"} {
						f.put(0, []byte(session), quote(session, "small"))
					}
					t.Cleanup(func() {
						if t.Failed() {
							for _, e := range logs.All() {
								t.Log(e.Time.Format("05.000"), e.Message, e.ContextMap())
							}
						}
					})
					letter := f.take("floor-dlq", 1)[0]
					require.Equal(t, "s-1", string(letter.Key))
					require.Contains(t, header(letter, topics.HeaderErrorReason), "too large")
					sessions := map[string]bool{}
					for _, r := range f.take("answers", 2) {
						sessions[string(r.Key)] = true
					}
					require.True(t, sessions["s-2"])
					require.LessOrEqual(t, restarted.Load(), restarts)
					if restarts == 0 {
						require.Len(t, logs.FilterMessageSnippet("topics accept only smaller records").FilterField(
							zap.String("topics", less+" 10012")).All(), 1)
					}
				})
			}
		}
	}
}

// Small records that together exceed what their topic accepts are not sent in one batch.
func TestSmallRecordsAreSentInBatchesThatTheirTopicAccepts(t *testing.T) {
	for name, known := range map[string]bool{"described": true, "not permitted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, 1)
			f.acceptLess("answers", "10012")
			if !known {
				f.denyConfigs()
			}
			var restarted atomic.Int32
			f.start(graphOf(func(c *processors.Context, _ codec.Decoded[asked]) error {
				for range 20 {
					if err := processors.Emit(c, answers, c.Key(), strings.Repeat("x", 3000), nil); err != nil {
						return err
					}
				}
				return nil
			}, codec.String()), processors.WithMetrics(processors.Metrics{Restart: func(error, time.Duration) { restarted.Add(1) }}))
			f.put(0, []byte("s-1"), quote("s-1", "many"))
			f.take("answers", 20)
			if known {
				require.Zero(t, restarted.Load())
			} else {
				require.LessOrEqual(t, restarted.Load(), int32(1))
			}
		})
	}
}

func TestPublisherReportsWhatATopicRefusesAsTooLarge(t *testing.T) {
	f := newField(t, 1)
	f.acceptLess("answers", "10012")
	p := newPublisher(t, f.addrs)
	record := func(size int) processors.Outbound {
		return processors.Outbound{Topic: "answers", Key: "s-1", Value: []byte(strings.Repeat("x", size))}
	}
	for range 2 {
		require.ErrorIs(t, p.Publish(t.Context(), record(12_000)), processors.ErrTooLarge)
	}
	var all sync.WaitGroup
	for range 20 { // they do not fit into one batch
		all.Go(func() {
			if err := p.Publish(t.Context(), record(3000)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.NoError(t, p.Publish(t.Context(), record(9_900)))
}
