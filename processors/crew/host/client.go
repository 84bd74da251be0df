package host

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

// handle handles a line of the agent's standard output. Lines are handled in order.
func (r *run) handle(line []byte) {
	m, err := receive(line)
	switch {
	case m.Method == "" && len(m.ID) == 0:
		r.noMessage()
	case m.Method == "":
		if !r.calls.answer(m) {
			r.log.Debug("agent answered a request that it was not sent")
		}
	case err != nil && len(m.ID) > 0:
		r.refuse(m.ID, &rpcError{codeInvalidRequest, "invalid request"})
	case err != nil:
		r.noMessage()
	case len(m.ID) > 0:
		r.asked(m)
	case m.Method == "session/update":
		r.updated(m.Params)
	case m.Method == "$/cancel_request":
		var c struct {
			RequestID topics.Raw `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &c) == nil {
			r.asks.withdraw(string(c.RequestID))
		}
	}
}

// noMessage reports a line that is no message: the first, the tenth, the hundredth and so on.
func (r *run) noMessage() {
	r.garbage++
	n := r.garbage
	for n%10 == 0 {
		n /= 10
	}
	if n == 1 {
		r.problem("standard output has lines that are no messages of ACP: %d so far", r.garbage)
	}
}

// updated queues an update as the agent wrote it, of whatever kind it is.
func (r *run) updated(params topics.Raw) {
	var n struct {
		SessionID string     `json:"sessionId"`
		Update    topics.Raw `json:"update"`
	}
	if json.Unmarshal(params, &n) != nil || len(n.Update) == 0 || n.Update[0] != '{' || len(n.SessionID) > maxSessionID {
		r.noMessage()
		return
	}
	for _, raw := range fitting(n.Update) {
		u := &update{run: r.id, session: n.SessionID, replay: r.session.isReplaying(), raw: raw}
		if r.host.out.put(r.host.life, mailbox.Agent(r.start.AgentID), item{update: u, size: len(raw)}) != nil {
			return
		}
	}
	if !r.session.isReplaying() { // of an earlier session, the answer to session/load has the mode
		r.changedMode(n.SessionID, n.Update)
	}
}

// asked handles a request of the agent.
func (r *run) asked(m received) {
	policy := r.host.config.Policy
	switch m.Method {
	case "session/request_permission":
		r.askPermission(m)
	case "fs/read_text_file":
		request(r, m, policy.Read, func(q readRequest) any { return q }, r.readFile)
	case "fs/write_text_file":
		request(r, m, policy.Write, writeRequest.shown, r.writeFile)
	case "terminal/create":
		request(r, m, policy.Terminal, func(q createRequest) any { return q.shown(r.files.dir) }, r.createTerminal)
	case "terminal/output":
		request(r, m, Allow, nil, ofTerminal(r, terminalOutput))
	case "terminal/wait_for_exit":
		request(r, m, Allow, nil, ofTerminal(r, awaitTerminal))
	case "terminal/kill":
		request(r, m, Allow, nil, ofTerminal(r, r.killTerminal))
	case "terminal/release":
		request(r, m, Allow, nil, ofTerminal(r, r.releaseTerminal))
	default:
		r.refuse(m.ID, &rpcError{codeNoMethod, "method not found"})
	}
}

func (r *run) refuse(id topics.Raw, err error) {
	e, ok := err.(*rpcError) //nolint:errorlint // made by this package, not wrapped
	if !ok {
		e = &rpcError{codeInternal, err.Error()}
	}
	r.send(message{ID: id, Error: &rpcError{e.Code, truncate.Marked(e.Message, 1000)}})
}

// digestOf returns the SHA-256 of what a request contains. It is part of the arguments, so an approval of later requests counts
// only for the same content.
func digestOf(content []byte) string {
	d := sha256.Sum256(content)
	return hex.EncodeToString(d[:])
}

func (r *run) answer(id topics.Raw, result any) { r.send(message{ID: id, Result: encoded(result)}) }

// maxAtOnce is how many requests of an agent are handled or wait for a person at the same time.
const maxAtOnce = 64

// prompt sends a prompt. Its answer ends the turn; the end of the process ends it, too, without a record of its own.
func (r *run) prompt(p crewbody.Send) {
	r.prompting.Store(&p.PromptID)
	r.request("session/prompt", map[string]any{"sessionId": p.SessionID, "prompt": p.Blocks}, func(raw topics.Raw, err error) {
		r.prompting.CompareAndSwap(&p.PromptID, nil)
		end := crewbody.TurnEnded{Run: r.id, PromptID: p.PromptID}
		var result struct {
			StopReason string     `json:"stopReason"`
			Usage      topics.Raw `json:"usage"`
		}
		switch {
		case err != nil:
			end.Error = truncate.Marked(err.Error(), 2000)
		case json.Unmarshal(raw, &result) != nil:
			end.Error = "the answer to session/prompt is not of ACP"
		default:
			end.StopReason, end.Usage = truncate.Text(result.StopReason, 200), bounded(result.Usage)
		}
		r.say(end)
	})
}

// cancel cancels the turn. The open requests of the session are answered as cancelled, which ACP demands of the client. The turn may
// have ended since the action was written: then nothing is cancelled, because the agent could take it for the next turn's.
func (r *run) cancel(c crewbody.Cancel) {
	if open := r.prompting.Load(); c.PromptID != "" && (open == nil || *open != c.PromptID) {
		return
	}
	r.send(message{Method: "session/cancel", Params: encoded(map[string]any{"sessionId": c.SessionID})})
	r.asks.cancelAll()
}

// choose selects the agent's model, if the agent lets its client do that.
func (r *run) choose(s opened) {
	model, id := r.start.Model, s.SessionID
	if model == "" {
		return
	}
	var options []struct {
		ID       string `json:"id"`
		Category string `json:"category"`
		Current  any    `json:"currentValue"`
	}
	if json.Unmarshal(s.Options, &options) == nil {
		for _, o := range options {
			if o.Category != "model" && !strings.EqualFold(o.ID, "model") {
				continue
			}
			if o.Current != model {
				r.chosen(r.call(r.host.times.session, "session/set_config_option",
					map[string]any{"sessionId": id, "configId": o.ID, "value": model}, &struct{}{}))
			}
			return
		}
	}
	var models struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	}
	if json.Unmarshal(s.Models, &models) != nil || models.Current == model {
		return
	}
	for _, m := range models.Available {
		if m.ID == model {
			r.chosen(r.call(r.host.times.session, "session/set_model", map[string]any{"sessionId": id, "modelId": model}, &struct{}{}))
			return
		}
	}
}

func (r *run) chosen(err error) {
	if err != nil {
		r.problem("the agent uses its own model: %s", err)
	}
}
