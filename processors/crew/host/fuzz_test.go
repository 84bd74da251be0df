package host

import (
	"strings"
	"testing"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"go.uber.org/zap"
)

// FuzzOutput passes any bytes to a run as the output of its agent.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{},"options":[]}}`,
		`{"jsonrpc":"2.0","id":"x","method":"fs/write_text_file","params":{"path":"/a","content":""}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"\ud800"}}`, "[]\n\n{}\nnull",
		`{"id":{"a":1,"a":2},"method":5}`, `{"id":"x","id":7,"method":"a"}`, `{"id":1,"error":{"code":"x","code":[]}}`,
		strings.Repeat(`{"method":`, 600),
	} {
		f.Add([]byte(seed))
	}
	c := Config{
		Agent: "harbor", Name: "h", Brokers: []string{"b:1"}, Dirs: []string{f.TempDir()}, Commands: map[string][]string{"": {"sh"}},
		Policy: Policy{Read: Ask}, Logger: zap.NewNop(),
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		w := &written{}
		finish := h.open(w)
		r := newRun(h, "run", crewbody.Start{AgentID: agentID})
		r.in = &stdin{pipe: discard{}, failed: func() {}}
		if err := lines(strings.NewReader(string(raw)), 1<<20, r.handle); err != nil {
			t.Fatal(err)
		}
		r.end()
		r.asks.close()
		finish()
		r.in.close()
		r.in.done.Wait()
		for _, rec := range w.all() {
			if rec.in.Kind == "" {
				t.Fatal("a record without a kind")
			}
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
