package examples

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestOperatorRequeuesADeadDelivery(t *testing.T) {
	var healthy atomic.Bool
	received := make(chan struct{}, 10)
	o := operate(t, func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		received <- struct{}{}
	})
	o.say("s-reply", "hello", `,"reply":{"callbackService":"ledger"}`)
	dead := o.eventually("deliveries", some, "dead")
	id := dead[0].(map[string]any)["delivery_id"].(string)
	out, _ := o.run(0, "deliveries", "--status", "dead")
	require.Contains(t, out, "http/ledger")
	require.NotContains(t, out, secretText)

	healthy.Store(true)
	require.Equal(t, []any{id}, o.object("requeue", id)["requeued"])
	<-received
	o.eventually("deliveries", func(l []any) bool { return len(l) == 0 }, "deliveries")
	_, said := o.run(1, "requeue", id)
	require.Contains(t, said, "no dead delivery")
	require.Empty(t, received, "it was delivered once")
	o.run(2, "requeue")
}

// poison writes records that the turn cannot decode and waits for their letters. Two of them are copies with one turntable.id.
func (o *operated) poison(n int) *kgo.Client {
	client, err := kgo.NewClient(kgo.SeedBrokers(o.broker.Addrs()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics("quay-message-input"))
	require.NoError(o, err)
	o.Cleanup(client.Close)
	for i := range n {
		for range 1 + i%2 {
			r := &kgo.Record{
				Topic: "quay-message-input", Key: fmt.Appendf(nil, "s-%d", i), Value: fmt.Appendf(nil, "poison %d", i),
				Headers: []kgo.RecordHeader{{Key: "turntable.id", Value: fmt.Appendf(nil, "id-%d", i)}, {Key: "own", Value: []byte("kept")}},
			}
			if i == 0 {
				r.Headers = nil
			}
			require.NoError(o, client.ProduceSync(o.ctx, r).FirstErr())
		}
	}
	o.eventually("letters", func(l []any) bool { return len(l) == n+n/2 }, "dead", "--group", "streams")
	return client
}

// written counts the committed records of message-input by their values, up to its present end.
func (o *operated) written(client *kgo.Client) map[string]int {
	count := map[string]int{}
	end := &kgo.Record{Topic: "quay-message-input", Key: []byte("end")}
	ends := map[int32]int64{}
	for p := range int32(2) {
		end := *end
		end.Partition = p
		manual, err := kgo.NewClient(kgo.SeedBrokers(o.broker.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(o, err)
		require.NoError(o, manual.ProduceSync(o.ctx, &end).FirstErr())
		ends[p] = end.Offset
		manual.Close()
	}
	for len(ends) > 0 {
		fetched := client.PollFetches(o.ctx)
		require.NoError(o, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) {
			if string(r.Key) == "end" {
				if ends[r.Partition] == r.Offset {
					delete(ends, r.Partition)
				}
				return
			}
			count[string(r.Value)]++
			if string(r.Value) != "poison 0" {
				require.Len(o, r.Headers, 2, "turntable.id and own")
			}
		})
	}
	return count
}

// The command is killed when the record and its mark are written and not yet committed, and after some commits.
func TestDeadLetterIsRequeuedOnceAlthoughTheCommandIsKilled(t *testing.T) {
	const n = 6
	o := operate(t, http.NotFound)
	client := o.poison(n)
	o.stop()
	commits, hold, held := 0, make(chan struct{}), make(chan struct{})
	o.broker.Cluster().ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		o.broker.Cluster().KeepControl()
		if commits++; commits != 2 && commits != 5 {
			return nil, nil, false
		}
		o.broker.Cluster().SleepControl(func() {
			held <- struct{}{}
			<-hold
		})
		return nil, errors.New("the command was killed"), true
	})
	for range 2 {
		c := exec.CommandContext(o.ctx, filepath.Join(bin, "operate"), o.args([]string{"requeue", "--all", "--yes"})...)
		c.WaitDelay = time.Minute
		require.NoError(t, c.Start())
		<-held
		require.NoError(t, c.Process.Kill())
		require.Error(t, c.Wait())
		hold <- struct{}{}
	}

	o.object("requeue", "--all", "--yes")
	require.Empty(t, o.object("requeue", "--all", "--yes")["requeued"], "a second run has nothing to do")
	count := o.written(client)
	for i := range n {
		require.Equal(t, 1+i%2+1, count[fmt.Sprintf("poison %d", i)], "record %d is written back once", i)
	}
	require.Empty(t, o.object("dead", "--group", "streams")["letters"])
	letters := o.object("dead", "--group", "streams", "--all")["letters"].([]any)
	require.Len(t, letters, n+n/2)
	first := letters[0].(map[string]any)["id"].(string)
	out, said := o.run(1, "requeue", first, "-o", "json")
	require.Contains(t, out, "it was requeued at")
	require.Contains(t, said, "was not requeued")
	_, said = o.run(1, "requeue", "--all")
	require.Contains(t, said, "not confirmed")
}

// A record that fails again is requeued only on demand.
func TestRecordThatFailsAgainIsNotRequeuedByAll(t *testing.T) {
	o := operate(t, http.NotFound)
	o.poison(2)
	o.object("requeue", "--all", "--yes")
	again := o.eventually("letters", func(l []any) bool { return len(l) == 2 }, "dead", "--group", "streams")
	id := again[0].(map[string]any)["id"].(string)
	require.Equal(t, true, again[0].(map[string]any)["failed_again"])
	result := o.object("requeue", "--all", "--yes")
	require.Empty(t, result["requeued"])
	require.Len(t, result["skipped"], 2)
	require.Equal(t, []any{id}, o.object("requeue", id)["requeued"])
}
