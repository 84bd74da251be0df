package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// operated is an agent in this process, and the command turntable for it.
type operated struct {
	*testing.T
	ctx    context.Context
	broker *embedded.Broker
	agent  *agent.Agent
	stop   func() // of the agent
}

// secretText is what no command may print without --payload.
const secretText = "the-prompt-of-a-person"

// hostileText is what JSON has verbatim and a terminal obeys: CSI, and a change of the direction of text. escapes are in names.
const (
	hostileText = "\u009b31m\u202e"
	escapes     = "\x1b]0;OWNED\x07"
)

// playModel calls a tool, does not answer, or answers.
func playModel(ctx context.Context, s think.Step) (think.Reply, error) {
	switch text := topics.Text(s.Input().Content); {
	case strings.HasPrefix(text, "pay"):
		return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: "call-1", Name: "pay", Input: topics.Raw(`{"note":"` + secretText + hostileText + `"}`)}}}}, nil
	case strings.HasPrefix(text, "odd"):
		return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: "call-1", Name: "slow" + escapes, Input: topics.Raw(`{}`)}}}}, nil
	case strings.HasPrefix(text, "hang"):
		<-ctx.Done()
		return think.Reply{}, ctx.Err()
	default:
		return think.Say("Done: " + secretText), nil
	}
}

// operate starts a broker and an agent with approvals and deliveries, whose only receiver refuses everything until healthy.
func operate(t *testing.T, receiver http.HandlerFunc) *operated {
	t.Helper()
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	services, err := sink.ParseServices("ledger:" + server.URL)
	require.NoError(t, err)
	broker, err := embedded.Start(embedded.Config{Partitions: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	pay := tools.New("pay", "Pays.", func(context.Context, struct {
		Note string `json:"note"`
	},
	) (string, error) {
		return "paid", nil
	})
	a, err := agent.New("quay", agent.Config{
		Model: think.Func(playModel), Tools: []tools.Tool{pay}, Approval: &approval.Policy{TTL: time.Hour}, Brokers: broker.Addrs(),
		Deliver: &agent.Deliver{Services: services, Config: delivery.Config{DefaultService: delivery.Service{Attempts: 1}}},
		Logger:  zap.NewNop(),
	})
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	o := &operated{t, deadline(t), broker, a, sync.OnceFunc(func() {
		end()
		require.NoError(t, <-ran)
	})}
	t.Cleanup(o.stop)
	select {
	case <-a.Ready():
	case err := <-ran:
		ran <- err
		require.NoError(t, errors.Join(err, errors.New("the agent has ended")))
	}
	return o
}

// say sends a message through the chat door.
func (o *operated) say(session, text, more string) {
	o.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/chat",
		strings.NewReader(`{"session_id":"`+session+`","content":"`+text+`"`+more+`}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	o.agent.Handler().ServeHTTP(w, r)
	require.Equal(o, http.StatusOK, w.Code, w.Body)
}

func (o *operated) args(args []string) []string {
	return append(args, "--agent", "quay", "--brokers", o.broker.Addrs()[0])
}

// run runs the command with an exit code and returns its output.
func (o *operated) run(code int, args ...string) (out, errs string) {
	o.Helper()
	stdout, stderr := new(buffer), new(buffer)
	require.Equal(o, code, run(o.ctx, "operate", o.args(args), strings.NewReader(""), stdout, stderr), "%s: %s%s", args, stdout, stderr)
	return stdout.String(), stderr.String()
}

// object runs the command with -o json. All of its fields must be those of the README.
func (o *operated) object(args ...string) map[string]any {
	o.Helper()
	out, _ := o.run(0, append(args, "-o", "json")...)
	var value map[string]any
	require.NoError(o, json.Unmarshal([]byte(out), &value), out)
	if args[0] != "show" {
		known := fieldsOf(o.T, args[0])
		for _, path := range paths("", value) {
			require.Contains(o, known, path, "the field of %s is not in README.md", args[0])
		}
		for _, path := range known {
			if !strings.ContainsAny(path, ".[") && path != "turn_id" {
				require.Contains(o, value, path)
			}
		}
	}
	return value
}

// eventually runs a command until its list satisfies a condition.
func (o *operated) eventually(list string, wants func([]any) bool, args ...string) []any {
	o.Helper()
	var found []any
	require.Eventually(o, func() bool {
		found = o.object(args...)[list].([]any)
		return wants(found)
	}, 2*time.Minute, 50*time.Millisecond, "%s", args)
	return found
}

func some(list []any) bool { return len(list) > 0 }

var fieldName = regexp.MustCompile("`([^`]+)`")

// fieldsOf are the fields of a command in the README.
func fieldsOf(t *testing.T, command string) (fields []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(module, "examples", "operate", "README.md"))
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "## JSON")
	for line := range strings.Lines(section) {
		cells := strings.SplitN(line, "|", 3)
		if len(cells) < 3 || !strings.Contains(","+strings.ReplaceAll(cells[1], " ", "")+",", ","+command+",") {
			continue
		}
		for _, name := range fieldName.FindAllStringSubmatch(cells[2], -1) {
			switch name[1] {
			case "deliveries[]":
				fields = append(fields, fieldsOf(t, "deliveries")...)
			case "gates[].outcome":
				for _, f := range fieldsOf(t, "decide") {
					fields = append(fields, "gates[]."+f)
				}
			}
			fields = append(fields, name[1])
		}
	}
	require.NotEmpty(t, fields, command)
	return fields
}

// paths are the fields of a value that are no objects.
func paths(prefix string, value any) (all []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			all = append(all, paths(strings.TrimPrefix(prefix+"."+name, "."), member)...)
		}
	case []any:
		for _, member := range v {
			all = append(all, paths(prefix+"[]", member)...)
		}
	case nil:
	default:
		all = append(all, prefix)
	}
	return all
}

func TestOperatorSeesAndEndsSessions(t *testing.T) {
	o := operate(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	o.say("s-done", "hello "+secretText, "")
	o.say("s-hang", "hang "+secretText, `,"request_id":"r-1"`)
	o.eventually("sessions", func(l []any) bool { return len(l) == 2 }, "sessions")
	o.eventually("sessions", func(l []any) bool {
		return len(l) == 1 && l[0].(map[string]any)["session_id"] == "s-hang"
	}, "sessions", "--waits", "model", "--open")
	out, _ := o.run(0, "sessions")
	require.Regexp(t, `(?m)^SESSION +STATE`, out)
	require.Regexp(t, `(?m)^s-hang +step 1 waits for model .*\(\d+s ago\) .*\(in \d+m\)`, out)

	_, said := o.run(1, "cancel", "s-done")
	require.Contains(t, said, "nothing to cancel")
	_, said = o.run(1, "cancel", "s-hang", "--request", "r-other")
	require.Contains(t, said, "no open or waiting message")
	result := o.object("cancel", "s-hang", "--request", "r-1")
	require.Equal(t, true, result["done"])
	require.Empty(t, o.object("sessions", "--open")["sessions"])

	out, _ = o.run(0, "show", "s-done")
	require.Contains(t, out, "history: 2 messages")
	require.NotContains(t, out, secretText)
	out, _ = o.run(0, "show", "s-done", "--payload")
	require.Contains(t, out, secretText)
	out, _ = o.run(0, "show", "s-done", "-o", "json")
	require.NotContains(t, out, secretText)
	require.Contains(t, o.object("show", "s-done", "--payload"), "history")
	_, said = o.run(1, "show", "s-none")
	require.Contains(t, said, `no session "s-none"`)

	_, said = o.run(1, "purge", "s-done")
	require.Contains(t, said, "not confirmed")
	require.Len(t, o.object("sessions")["sessions"], 1)
	o.object("purge", "s-done", "--yes")
	require.Empty(t, o.object("sessions")["sessions"])
	_, said = o.run(1, "end", "s-hang")
	require.Contains(t, said, "no memory")

	require.NotEmpty(t, o.object("lag")["groups"])
	groups := o.object("describe")["groups"].([]any)
	require.Len(t, groups, 6, "turn, fold, gates and grants, deliveries and routes")
	require.Equal(t, true, groups[0].(map[string]any)["running"])
	out, _ = o.run(0, "describe", "--mermaid")
	require.Contains(t, out, "flowchart LR")
	out, _ = o.run(0, "describe", "--acls", "User:support", "--exactly-once")
	require.Contains(t, out, "--transactional-id")
	require.Zero(t, o.object("topics", "--check")["problems"])
	_, said = o.run(1, "topics", "--check", "--with", "costs")
	require.Contains(t, said, "topics have problems")
	o.run(2, "topics", "--with", "nonsense")
}

func TestOperatorDecidesAGate(t *testing.T) {
	o := operate(t, http.NotFound)
	o.say("s-pay", "pay", "")
	gates := o.eventually("gates", some, "gates")
	id := gates[0].(map[string]any)["gate_id"].(string)
	out, _ := o.run(0, "gates")
	require.Contains(t, out, id)
	require.NotContains(t, out, secretText)

	_, said := o.run(1, "decide", id, "approve")
	require.Contains(t, said, "--args-sha256")
	out, _ = o.run(0, "show", "s-pay", "--payload")
	require.Contains(t, out, secretText+`\u009b31m\u202e`)
	require.NotContains(t, out, "\u009b")
	asJSON, _ := o.run(0, "show", "s-pay", "--payload", "-o", "json")
	require.Contains(t, asJSON, secretText+`\u009b31m\u202e`)
	require.NotContains(t, asJSON, "\u202e")
	digest := regexp.MustCompile(`args_sha256 (\w+)`).FindStringSubmatch(out)
	require.Len(t, digest, 2)
	approve := []string{"decide", id, "approve", "--args-sha256", digest[1], "--by", "mira"}
	outcome := o.object(approve...)["outcome"].(map[string]any)
	require.Equal(t, "approved", outcome["status"])
	require.Equal(t, "mira", outcome["by"])
	require.Equal(t, outcome, o.object(approve...)["outcome"], "a repeat reports the same")
	_, said = o.run(1, "decide", id, "deny")
	require.Contains(t, said, "has ended before, as approved")
	require.Empty(t, o.object("gates")["gates"])
	require.Len(t, o.object("gates", "--all")["gates"], 1)
	o.run(2, "decide", id, "perhaps")
}

// A broker that does not exist, and one that never answers.
func TestOperatorIsToldThatTheBrokerIsDead(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	for address, want := range map[string]string{
		free.Addr().String(): "nothing listens there: check the address in bootstrap.servers", silent.Addr().String(): "check",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		errs := new(buffer)
		code := run(ctx, "operate", []string{"sessions", "--agent", "quay", "--brokers", address, "--timeout", "2s"}, nil, new(buffer), errs)
		require.NoError(t, ctx.Err(), "it ends by itself")
		cancel()
		require.Equal(t, 1, code)
		require.Contains(t, errs.String(), want)
		require.Contains(t, errs.String(), address)
		require.Equal(t, 1, bytes.Count([]byte(errs.String()), []byte("\n")), errs)
	}
}
