package gatehttp

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

const (
	defaultPage = 100
	maxPage     = 500
	// maxListBytes is from which size on a page ends.
	maxListBytes = 4 << 20
	// scanStep is how many gates are looked at under the lock at a time.
	scanStep = 1000
)

// get answers with one gate. With wait, it waits for the outcome.
func (h *Handler) get(r *request) answer {
	id := r.Parts[0]
	wait, ok := waitOf(r.URL.Query(), 0)
	if !ok {
		return badWait()
	}
	session, rejection, ok := h.find(r, id)
	if !ok {
		return rejection
	}
	if over := h.index.over(id); over != nil {
		h.await(r.Context(), over, wait)
		if r.Caller.Ended(h.config.Clock.Now()) {
			return entrance.Failed(http.StatusUnauthorized, "Unauthorized")
		}
	}
	row, err := h.index.row(r.Context(), r.Key(), session)
	if err != nil {
		return h.unreadable(err)
	}
	v := row.view(id)
	if v == nil { // purged in the meantime
		return notFound()
	}
	return answer{Status: http.StatusOK, Body: h.index.shownTo(r.Key(), v)}
}

// list answers with the gates of a session, or with the open gates of all sessions that the caller may use.
func (h *Handler) list(r *request) answer {
	q := r.URL.Query()
	wait, ok := waitOf(q, 0)
	switch status := q.Get("status"); {
	case !ok:
		return badWait()
	case status != "" && status != string(gate.StatusPending):
		return entrance.Failed(http.StatusBadRequest, "status is neither absent nor pending")
	case q.Get("session_id") != "":
		return h.listSession(r, q.Get("session_id"), status != "", wait)
	case status == "" || wait > 0:
		return entrance.Failed(http.StatusBadRequest, "Without session_id, status must be pending and wait absent")
	}
	return h.listPending(r, q)
}

// listSession answers with the gates of one session. With wait, it waits until there is one.
func (h *Handler) listSession(r *request, session string, pendingOnly bool, wait time.Duration) answer {
	if refusal := r.Session(session); refusal != nil {
		return refusal.Answer()
	}
	shown := func(row *row) (views [][]byte) {
		for i := range row.all() {
			if v := &row.views[i]; v.Outcome == nil || !pendingOnly {
				views = append(views, h.index.shownTo(r.Key(), v))
			}
		}
		return views
	}
	changed := make(chan struct{}, 1)
	row, stop, err := h.index.watch(r.Context(), r.Key(), session, func(change) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return h.unreadable(err)
	}
	defer stop()
	views := shown(row)
	if len(views) == 0 && h.await(r.Context(), changed, wait) {
		if r.Caller.Ended(h.config.Clock.Now()) {
			return entrance.Failed(http.StatusUnauthorized, "Unauthorized")
		}
		if row, err = h.index.row(r.Context(), r.Key(), session); err != nil {
			return h.unreadable(err)
		}
		views = shown(row)
	}
	return answer{Status: http.StatusOK, Body: h.page(views, "")}
}

// listPending answers with a page of the open gates of all sessions that the caller may use, in the order of their requests.
func (h *Handler) listPending(r *request, q url.Values) answer {
	limit, okLimit := r.Limit(defaultPage, maxPage)
	opened, id, okAfter := cursorOf(q.Get("after"))
	if !okLimit || !okAfter {
		return entrance.Failed(http.StatusBadRequest, "limit or after is not usable")
	}
	if err := h.scans.Acquire(r.Context(), r.Key()); err != nil {
		return notReady()
	}
	defer h.scans.Release()
	var views [][]byte
	size, last := 0, ""
	for {
		part := h.index.after(opened, id, scanStep)
		for _, k := range part {
			if opened, id = k.opened, k.id; !r.Caller.Allowed(k.session) {
				continue
			}
			if len(views) == limit || size > maxListBytes {
				return answer{Status: http.StatusOK, Body: h.page(views, last)}
			}
			row, err := h.index.row(r.Context(), r.Key(), k.session)
			if err != nil {
				return h.unreadable(err)
			}
			if v := row.view(k.id); v != nil && v.Outcome == nil {
				views = append(views, h.index.shownTo(r.Key(), v))
				size, last = size+len(views[len(views)-1]), strconv.FormatInt(k.opened, 36)+"."+k.id
			}
		}
		if len(part) < scanStep {
			return answer{Status: http.StatusOK, Body: h.page(views, "")}
		}
	}
}

// after returns the open gates after a place in their order, at most n. Their constant fields may be read.
func (x *Index) after(opened int64, id string, n int) []*known {
	x.mu.Lock()
	defer x.mu.Unlock()
	i, found := x.table.position(opened, id)
	if found {
		i++
	}
	return slices.Clone(x.table.pending[i:min(i+n, len(x.table.pending))])
}

// page returns a page of gates as JSON. next is where the next page begins, empty for the last one.
func (h *Handler) page(views [][]byte, next string) []byte {
	gates := append(append([]byte{'['}, bytes.Join(views, []byte{','})...), ']')
	members := []any{"gates", gates}
	if next != "" {
		members = append(members, "next", next)
	}
	if !h.index.complete() {
		members = append(members, "incomplete", true)
	}
	return entrance.Object(members...)
}

func cursorOf(text string) (opened int64, id string, ok bool) {
	if text == "" {
		return 0, "", true
	}
	number, id, ok := strings.Cut(text, ".")
	opened, err := strconv.ParseInt(number, 36, 64)
	return opened, id, ok && err == nil
}
