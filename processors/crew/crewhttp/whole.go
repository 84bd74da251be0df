package crewhttp

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// requestTimeout bounds the search for a request.
	requestTimeout = 10 * time.Second
	requestPoll    = 50 * time.Millisecond
	// maxSkew is how much earlier than its event a request may have been written, by the clocks of two processes.
	maxSkew = 2 * time.Minute
)

// requestReader reads the records of a key: see processors.Follower.
type requestReader interface {
	Replay(ctx context.Context, topic, key string, since time.Time, take func(context.Context, processors.Inbound) bool) (int64, error)
}

// linkTo returns the path of a whole permission request.
func (x *Index) linkTo(agent, id string) string {
	return x.config.under("/agents/") + url.PathEscape(agent) + "/permissions/" + url.PathEscape(id)
}

// linked adds the link to the event of a request that is not shown whole.
func (x *Index) linked(in topics.CrewEvent) topics.CrewEvent {
	if in.Type != askedEvent {
		return in
	}
	a := askedOf(in.Fields)
	if a == nil || !a.Truncated {
		return in
	}
	var fields, request map[string]topics.Raw
	if json.Unmarshal(in.Fields, &fields, lenient) != nil || json.Unmarshal(fields["request"], &request, lenient) != nil {
		return in // not reached: askedOf has read them
	}
	request["url"] = entrance.JSON(x.linkTo(a.agent, a.ID))
	fields["request"] = entrance.JSON(request)
	in.Fields = entrance.JSON(fields)
	return in
}

// linkedView adds the links to the requests of an agent that are not shown whole.
func (x *Index) linkedView(a view.Agent) view.Agent {
	for i := range a.Permissions {
		if p := &a.Permissions[i]; p.Truncated {
			p.URL = x.linkTo(a.ID, p.ID)
		}
	}
	return a
}

// whole returns the arguments of the gate of a request; nil if the topic no longer has it.
func (x *Index) whole(ctx context.Context, agent string, asked view.PermissionAsked) (args topics.Raw, err error) {
	at, err := time.Parse(time.RFC3339, asked.Timestamp)
	if err != nil {
		at = x.config.Clock.Now().Add(-x.config.History.Window)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// The event that names a request and the request are written to two topics at once: either can be visible first.
	for {
		args, err = x.findRequest(ctx, agent, asked, at)
		if args != nil || err != nil || x.config.Clock.Now().Sub(at) >= requestTimeout {
			return args, err
		}
		select {
		case <-time.After(requestPoll):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (x *Index) findRequest(
	ctx context.Context, agent string, asked view.PermissionAsked, at time.Time,
) (args topics.Raw, err error) {
	topic := x.catalog.GateRequests
	_, err = x.requests.Replay(ctx, topic.Name(), agent, at.Add(-maxSkew), func(_ context.Context, r processors.Inbound) bool {
		if r.Value == nil {
			return true
		}
		d := topic.Codec().Unmarshal(r.Value)
		found := d.Err == nil && d.Value.GateID == asked.ID && d.Value.Withdrawn == "" && topics.ArgsSHA256(d.Value.Args) == asked.ArgsSHA256
		if found {
			args = d.Value.Args
		}
		return !found
	})
	return args, err
}

// wholePermission answers with the whole of an open permission request, and notes that the caller has read it.
func (h *Handler) wholePermission(r *request) answer {
	row, rejection, ok := h.agent(r, r.Parts[0])
	if !ok {
		return rejection
	}
	asked, open, err := h.index.askedBy(r.Context(), row.view.ID, r.Parts[1])
	switch {
	case err != nil:
		return notReady()
	case !open:
		return entrance.Failed(http.StatusNotFound, "Unknown permission request")
	case !asked.Truncated:
		return entrance.OK(asked)
	}
	args, err := h.index.whole(r.Context(), row.view.ID, asked)
	switch {
	case err != nil:
		return notReady()
	case args == nil:
		return entrance.Failed(http.StatusNotFound, "The permission request is no longer kept")
	}
	h.index.shown.Add(r.Key(), asked.ID)
	part := func(name string) topics.Raw { v, _ := topics.Lookup(args, name); return v }
	asked.Arguments, asked.Content, asked.Truncated, asked.URL = part("arguments"), part("content"), false, ""
	return entrance.OK(struct {
		view.PermissionAsked
		AgentID   string     `json:"agentId"`
		Title     topics.Raw `json:"title,omitzero"`
		Kind      topics.Raw `json:"kind,omitzero"`
		Locations topics.Raw `json:"locations,omitzero"`
	}{asked, row.view.ID, part("title"), part("kind"), part("locations")})
}
