//go:build unix

package examples

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/testing/wirecheck"
	"github.com/turntable-streams/turntable/topics"
)

// The workers in other languages answer the questions of an agent whose process has neither a model nor tools. The variables have
// the interpreters, see make test-node and make test-python.
func TestWorkersOfOtherLanguagesAnswer(t *testing.T) {
	for language, variable := range map[string]string{"typescript": "TURNTABLE_NODE", "python": "TURNTABLE_PYTHON"} {
		t.Run(language, func(t *testing.T) {
			interpreter := os.Getenv(variable)
			if interpreter == "" {
				t.Skip(variable + " is not set")
			}
			w := startWorkers(t, language, interpreter)
			for _, scene := range []struct {
				name string
				play func(*testing.T)
			}{
				{"sessions of all partitions get answers", w.sessions},
				{"an error of the tool is a result", w.toolError},
				{"an error of the model ends the turn", w.modelError},
				{"bad records are skipped and not quoted", w.badRecords},
				{"a killed tool is called again", w.killedTool},
				{"a repeated answer has the same ID and changes nothing", w.repeatedAnswers},
				{"Ctrl-C ends with 0", w.interrupted},
				{"all records are valid", w.records},
			} {
				require.True(t, t.Run(scene.name, scene.play), "the next scenes would wait for nothing")
			}
		})
	}
}

// Each session gets an answer of the model that has the result of the tool, and its second turn has the first one as history.
func (w *workers) sessions(t *testing.T) {
	found := map[int32]bool{}
	for _, session := range []string{"s-1", "s-2", "s-3", "s-4", "s-5", "s-6", "s-7", "s-8"} {
		require.Contains(t, w.ask(t, session, `"Where is order 7?"`), "order_status: on its way")
		found[codec.PartitionOf(session, partitions)] = true
	}
	require.Len(t, found, partitions)
	require.Contains(t, w.ask(t, "s-1", `"And order 8?"`), "order_status: delivered")
	var history string // of the last step
	for _, r := range w.read(t, w.topics.EnrichedMessageInput.Name()) {
		if string(r.Key) == "s-1" {
			history = string(w.topics.EnrichedMessageInput.Codec().Unmarshal(r.Value).Value.History)
		}
	}
	require.Contains(t, history, "Where is order 7?")
	require.Contains(t, history, "order_status: on its way")
}

func (w *workers) toolError(t *testing.T) {
	require.Contains(t, w.ask(t, "s-1", `"Where is order 99?"`), "there is no order 99")
}

func (w *workers) modelError(t *testing.T) {
	require.Contains(t, w.ask(t, "s-1", `[{"type":"text","text":"Where is order 7?"}]`), "the model reads text only")
	require.Contains(t, w.ask(t, "s-1", `"Where is order 7?"`), "order_status: on its way", "the session goes on")
}

func (w *workers) badRecords(t *testing.T) {
	for topic, worker := range map[string]*worker{w.topics.ToolUse.Name(): w.tool, w.topics.EnrichedMessageInput.Name(): w.model} {
		for _, value := range []string{"a secret, not JSON", `"a secret text"`, `{"secret":1`, "null", "", `{"secret":1}`} {
			w.write(t, topic, value)
		}
		require.Eventually(t, func() bool {
			return strings.Count(worker.errs.String(), "skipped ") == 5
		}, time.Minute, 10*time.Millisecond, worker.errs)
		require.Regexp(t, `skipped `+topic+`\[\d\]@\d+: \w+Error`, worker.errs.String())
		require.NotContains(t, worker.errs.String(), "secret")
	}
	w.write(t, w.topics.ToolUse.Name(), `{"tool_use_id":"t-0","name":"late"}`, kgo.RecordHeader{Key: topics.HeaderDeadline, Value: []byte("1")})
	w.write(t, w.topics.ToolUse.Name(), `{"tool_use_id":"t-1","name":"unknown"}`)
	answered := func(text string) func() bool {
		return func() bool {
			return slices.ContainsFunc(w.read(t, w.topics.ToolUseResult.Name()), func(r *kgo.Record) bool {
				return strings.Contains(string(r.Value), text)
			})
		}
	}
	require.Eventually(t, answered("there is no tool unknown"), time.Minute, 10*time.Millisecond)
	require.False(t, answered("there is no tool late")(), "the turn does not wait for it any more")
}

// The tool is killed while it reads the file of the orders, which is a pipe then.
func (w *workers) killedTool(t *testing.T) {
	orders, err := os.ReadFile(w.orders)
	require.NoError(t, err)
	require.NoError(t, os.Remove(w.orders))
	require.NoError(t, syscall.Mkfifo(w.orders, 0o600))
	answer := make(chan string, 1)
	go func() { answer <- w.ask(t, "s-2", `"Where is order 8?"`) }()
	var pipe *os.File
	require.Eventually(t, func() bool {
		pipe, err = os.OpenFile(w.orders, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil // the tool has opened it
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, w.tool.Process.Kill())
	_ = w.tool.Wait()
	require.NoError(t, pipe.Close())
	require.NoError(t, os.Remove(w.orders))
	require.NoError(t, os.WriteFile(w.orders, orders, 0o600))
	w.tool = w.start(t, "tool")
	require.Contains(t, <-answer, "order_status: delivered")
}

// A worker that died before it committed anything answers all calls again.
func (w *workers) repeatedAnswers(t *testing.T) {
	w.tool.interrupt(t)
	before := w.read(t, w.topics.ToolUseResult.Name())
	var start kadm.Offsets
	for p := range int32(partitions) {
		start.Add(kadm.Offset{Topic: w.topics.ToolUse.Name(), Partition: p})
	}
	require.NoError(t, kadm.NewClient(w.client).CommitAllOffsets(deadline(t), w.topics.Agent+"-tools", start))
	w.tool = w.start(t, "tool")
	var after []*kgo.Record
	require.Eventually(t, func() bool {
		after = w.read(t, w.topics.ToolUseResult.Name())
		return len(after) == 2*len(before)
	}, time.Minute, 100*time.Millisecond)
	times := map[string]int{}
	for _, r := range after {
		times[header(r, topics.HeaderID)]++
	}
	delete(times, "") // of the call that the test has written
	for id, n := range times {
		require.Equal(t, 2, n, id)
	}
	require.Len(t, times, len(before)-1)
	require.Contains(t, w.ask(t, "s-1", `"Where is order 8?"`), "order_status: delivered")
}

func (w *workers) interrupted(t *testing.T) {
	w.tool.interrupt(t)
	w.model.interrupt(t)
}

// What the workers have written is valid, in the partition of its key, and names what it answers. Nothing was in a wrong partition.
func (w *workers) records(t *testing.T) {
	answered := map[string]bool{}
	for _, r := range append(w.read(t, w.topics.EnrichedMessageInput.Name()), w.read(t, w.topics.ToolUse.Name())...) {
		answered[header(r, topics.HeaderID)] = true
	}
	for topic, word := range map[string]string{
		w.topics.ToolUseResult.Name(): "/result", w.topics.ThinkRequestResponse.Name(): "/think", w.topics.ThinkDLQ.Name(): "/failure",
	} {
		records := w.read(t, topic)
		require.NotEmpty(t, records, topic)
		for _, r := range records {
			require.NoError(t, wirecheck.Record(topic, r.Value))
			require.Equal(t, codec.PartitionOf(string(r.Key), partitions), r.Partition, "%s", r.Key)
			if id := header(r, topics.HeaderID); string(r.Key) != "bad" {
				require.True(t, strings.HasSuffix(id, word), id)
				require.True(t, answered[strings.TrimSuffix(id, word)], id)
			}
		}
	}
	for _, r := range w.read(t, w.topics.ThinkRequestResponse.Name()) {
		require.Equal(t, topics.NoEvents, header(r, topics.HeaderEvents))
	}
	for _, r := range w.read(t, w.topics.Agent+"-streams-loop") {
		require.Equal(t, w.topics.ThinkDLQ.Name(), header(r, "turntable.source.topic"), "it may have any number of partitions")
	}
	require.Len(t, w.read(t, w.topics.MessageOutput.Name()), int(w.asked.Load()))
}

// worker is a worker as a process.
type worker struct {
	*exec.Cmd
	errs *buffer
	stop context.CancelFunc
}

// start starts a worker: tool or model.
func (w *workers) start(t *testing.T, program string) *worker {
	t.Helper()
	args, extension := []string{}, ".py"
	if w.language == "typescript" {
		args, extension = []string{"--import", "tsx"}, ".ts"
	}
	ctx, stop := context.WithCancel(w.ctx)
	p := &worker{Cmd: exec.CommandContext(ctx, w.interpreter, append(args, program+extension)...), errs: new(buffer), stop: stop}
	p.Dir, p.Stderr, p.WaitDelay = filepath.Join(module, "examples", "workers", w.language), p.errs, time.Minute
	p.Cancel = func() error { return p.Process.Signal(os.Interrupt) }
	p.Env = append(os.Environ(), "AGENT="+w.topics.Agent, "KAFKA_BOOTSTRAP_SERVERS="+w.broker, "ORDERS="+w.orders)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(program, p.errs)
		}
	})
	return p
}

// interrupt ends the worker as Ctrl-C does.
func (p *worker) interrupt(t *testing.T) {
	t.Helper()
	p.stop()
	_ = p.Wait() // the context has ended
	require.Zero(t, p.ProcessState.ExitCode(), p.errs.String())
}
