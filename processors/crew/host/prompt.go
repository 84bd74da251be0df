package host

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/topics"
)

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
