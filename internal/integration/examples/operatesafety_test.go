package examples

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// produce writes records, those with a partition below 0 to the partition of their keys.
func (o *operated) produce(records ...*kgo.Record) {
	o.Helper()
	for _, r := range records {
		partitioner := kgo.ManualPartitioner()
		if r.Partition < 0 {
			partitioner = kgo.StickyKeyPartitioner(nil)
		}
		client, err := kgo.NewClient(kgo.SeedBrokers(o.broker.Addrs()...), kgo.RecordPartitioner(partitioner))
		require.NoError(o, err)
		err = client.ProduceSync(o.ctx, r).FirstErr()
		client.Close()
		require.NoError(o, err)
	}
}

// records returns the first n records of a topic.
func (o *operated) records(topic string, n int) (all []*kgo.Record) {
	o.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(o.broker.Addrs()...), kgo.ConsumeTopics(topic))
	require.NoError(o, err)
	defer client.Close()
	for len(all) < n {
		fetched := client.PollFetches(o.ctx)
		require.NoError(o, fetched.Err())
		all = append(all, fetched.Records()...)
	}
	return all
}

func TestRefusedRecordsAreRequeuedByTheirIDsOnly(t *testing.T) {
	o := operate(t, http.NotFound)
	o.say("s-late", "hello", "")
	o.eventually("sessions", some, "sessions")
	o.produce(
		&kgo.Record{Topic: "quay-session-control", Key: []byte("s-late"), Value: []byte(`{"action":"cancel"}`), Partition: -1},
		&kgo.Record{ // as if the handler of a tombstone had failed
			Topic: "quay-streams-dlq", Key: []byte("s-late"), Partition: -1, Headers: []kgo.RecordHeader{
				{Key: "error.reason", Value: []byte("the handler failed")},
				{Key: "error.source.partition", Value: []byte("0")},
				{Key: "error.source.topic", Value: []byte("quay-think-request-response")},
				{Key: "error.source.offset", Value: []byte("100")},
			},
		},
		&kgo.Record{
			Topic: "quay-tool-use-result", Key: []byte("s-late"), Partition: -1,
			Value: []byte(`{"session_id":"s-late","tool_use_id":"none","result":"late"}`),
		},
	)
	letters := o.eventually("letters", func(l []any) bool { return len(l) == 3 }, "dead")
	result := o.object("requeue", "--all", "--yes")
	require.Empty(t, result["requeued"])
	require.Len(t, result["skipped"], 3)
	for _, s := range result["skipped"].([]any) {
		require.Contains(t, s.(map[string]any)["reason"], "give its ID")
	}
	id := letters[0].(map[string]any)["id"].(string)
	require.Equal(t, []any{id}, o.object("requeue", id)["requeued"])

	for _, command := range []string{"dead", "lag", "requeue --all --yes"} {
		errs := new(buffer)
		args := append(strings.Fields(command), "--agent", "quai", "--brokers", o.broker.Addrs()[0])
		require.Equal(t, 1, run(o.ctx, "operate", args, nil, new(buffer), errs), command)
		require.Contains(t, errs.String(), "check --agent")
	}
}

// A record of cancel ends no other turn than the one that was open, also if it is handled late or twice.
func TestCancelNamesItsTurn(t *testing.T) {
	o := operate(t, http.NotFound)
	o.say("s-hang", "hang", `,"request_id":"r-1"`)
	o.eventually("sessions", some, "sessions", "--waits", "model")
	turn := o.object("cancel", "s-hang")["turn_id"].(string)
	control := o.records("quay-session-control", 1)[0]
	require.Contains(t, string(control.Value), `"r-1"`)
	require.Equal(t, "operate/cancel/"+turn, header(control, "turntable.id"))
}

// Names and keys in records do not reach the terminal as they are.
func TestOperatorsTerminalIsNotControlledByRecords(t *testing.T) {
	o := operate(t, http.NotFound)
	o.say("s-odd", "odd", "")
	o.eventually("sessions", func(l []any) bool {
		return len(l) == 1 && l[0].(map[string]any)["turn"].(map[string]any)["calls"] != nil
	}, "sessions", "--open")
	out, _ := o.run(0, "show", "s-odd")
	require.Contains(t, out, "OWNED")
	require.NotContains(t, out, "\x1b")
	o.stop()
	o.produce(&kgo.Record{Topic: "quay-streams-table", Key: []byte("bad" + escapes), Value: []byte("no row"), Partition: -1})
	_, said := o.run(0, "sessions")
	require.Contains(t, said, "OWNED")
	require.NotContains(t, said, "\x1b")
}

func TestPromptOfTheOperatorIsInterrupted(t *testing.T) {
	o := operate(t, http.NotFound)
	in, answer, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer answer.Close()
	ctx, interrupt := context.WithCancel(o.ctx)
	defer interrupt()
	errs, code := new(buffer), make(chan int, 1)
	go func() { code <- run(ctx, "operate", o.args([]string{"requeue", "--all"}), in, new(buffer), errs) }()
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "Type yes") }, time.Minute, 10*time.Millisecond)
	interrupt()
	require.Equal(t, 1, <-code)
	require.Contains(t, errs.String(), "nothing was changed")
}

func TestInterruptedRequeueDoesNotSayThatNothingWasWritten(t *testing.T) {
	o := operate(t, http.NotFound)
	client := o.poison(1)
	o.stop()
	hold, held := make(chan struct{}), make(chan struct{})
	o.broker.Cluster().ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		o.broker.Cluster().SleepControl(func() {
			close(held)
			<-hold
		})
		return nil, nil, false
	})
	ctx, interrupt := context.WithCancel(o.ctx)
	defer interrupt()
	errs, code := new(buffer), make(chan int, 1)
	go func() {
		code <- run(ctx, "operate", o.args([]string{"requeue", "--all", "--yes"}), strings.NewReader(""), new(buffer), errs)
	}()
	<-held
	interrupt()
	require.Equal(t, 1, <-code)
	close(hold)
	require.Contains(t, errs.String(), "whether it was written is not known; the next run finds out")
	o.object("requeue", "--all", "--yes")
	require.Equal(t, 2, o.written(client)["poison 0"], "it is written back once")
}

// A mark counts for the letters that were there before it.
func TestLettersAreNotHiddenByMarksOfOthers(t *testing.T) {
	const n = 8
	o := operate(t, http.NotFound)
	for i := range n {
		o.produce(&kgo.Record{Topic: "quay-message-input", Value: fmt.Appendf(nil, "poison %d", i), Partition: int32(i % 2)})
	}
	o.eventually("letters", func(l []any) bool { return len(l) == n }, "dead")
	require.Len(t, o.object("requeue", "--all", "--yes")["requeued"], n)
	o.eventually("letters", func(l []any) bool { return len(l) == n }, "dead") // they have failed again
	o.stop()
	letters := map[string]*kgo.Record{}
	var marks []*kgo.Record
	for _, r := range o.records("quay-streams-dlq", 3*n) {
		switch place := header(r, "error.source.topic") + header(r, "error.source.partition") + header(r, "error.source.offset"); {
		case header(r, "error.requeued") != "":
			marks = append(marks, r)
		case letters[place] == nil:
			letters[place] = r
		}
	}
	require.Len(t, marks, n)
	for _, m := range marks {
		require.Equal(t, letters[header(m, "error.source.topic")+header(m, "error.source.partition")+header(m, "error.source.offset")].Partition,
			m.Partition, "a mark is in the partition of its letter")
	}

	// The topic is deleted and created again, and another record has the offset.
	m := marks[0]
	o.produce(&kgo.Record{
		Topic: m.Topic, Partition: m.Partition, Value: []byte("another"),
		Headers: append([]kgo.RecordHeader{{Key: "error.reason", Value: []byte("another")}}, withoutRequeued(m)...),
	})
	found := o.object("dead")["letters"].([]any)
	require.Len(t, found, n+1)
	require.Equal(t, "another", found[n].(map[string]any)["reason"])
	require.Equal(t, true, found[n].(map[string]any)["failed_again"])
}

func withoutRequeued(r *kgo.Record) (headers []kgo.RecordHeader) {
	for _, h := range r.Headers {
		if h.Key != "error.requeued" {
			headers = append(headers, h)
		}
	}
	return headers
}

// A broker that stops answering when the topic is read does not outlast --timeout.
func TestOperatorsReadEndsAfterItsTimeout(t *testing.T) {
	o := operate(t, http.NotFound)
	o.say("s-1", "hello", "")
	o.eventually("sessions", some, "sessions")
	o.stop()
	asked, hold := 0, make(chan struct{})
	defer close(hold)
	o.broker.Cluster().ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		o.broker.Cluster().KeepControl()
		if r.(*kmsg.ListOffsetsRequest).Topics[0].Partitions[0].Timestamp == -2 { // oldest
			asked++
		}
		if asked > 2 { // once for each partition before the reader is ready
			o.broker.Cluster().SleepControl(func() { <-hold })
		}
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(o.ctx, 20*time.Second)
	defer cancel()
	errs := new(buffer)
	require.Equal(t, 1, run(ctx, "operate", o.args([]string{"sessions", "--timeout", "3s"}), nil, new(buffer), errs))
	require.NoError(t, ctx.Err(), "it ends by itself")
	require.Contains(t, errs.String(), "not done within 3s")
}

func TestLetterThatCannotBeWrittenDoesNotStopTheOthers(t *testing.T) {
	const n = 4
	o := operate(t, http.NotFound)
	client := o.poison(n)
	o.stop()
	sent := 0
	o.broker.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		o.broker.Cluster().KeepControl()
		request := r.(*kmsg.ProduceRequest)
		if request.TransactionID == nil || request.Topics[0].Topic != "quay-message-input" {
			return nil, nil, false
		}
		if sent++; sent != 2 {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.ProduceResponse)
		partition := kmsg.NewProduceResponseTopicPartition()
		partition.Partition, partition.ErrorCode = request.Topics[0].Partitions[0].Partition, kerr.MessageTooLarge.Code
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = request.Topics[0].Topic, []kmsg.ProduceResponseTopicPartition{partition}
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	out, said := o.run(1, "requeue", "--all", "--yes")
	require.Contains(t, out, "it was not written")
	require.Contains(t, said, "1 dead letters of quay-streams could not be written back")
	o.object("requeue", "--all", "--yes")
	count := o.written(client)
	for i := range n {
		require.Equal(t, 1+i%2+1, count[fmt.Sprintf("poison %d", i)], "record %d is written back once", i)
	}
}
