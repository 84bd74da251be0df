package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/operations"
)

// mostRequeued is how many deliveries or letters one form requeues.
const mostRequeued = 1000

// requeueDeliveries tries dead deliveries again: one, or all that a page has listed.
func requeueDeliveries(r *request, form url.Values) {
	n, skipped := 0, []string{}
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	r.Request = r.WithContext(ctx)
	for _, id := range form["id"][:min(len(form["id"]), mostRequeued)] {
		session, id, _ := strings.Cut(id, " ") // the ID of a delivery has no space
		session, err := url.QueryUnescape(session)
		if err != nil || !r.Caller.Allowed(session) {
			continue
		}
		views, err := r.deliveriesOf(session)
		if err != nil {
			r.console.logUnreadable(err)
			skipped = append(skipped, id+": it cannot be read now")
			continue
		}
		i := slices.IndexFunc(views, func(v delivery.View) bool { return v.DeliveryID == id && v.Status == delivery.StatusDead })
		if i < 0 {
			continue // it is not dead any more
		}
		if err := views[i].Requeue(r.Context(), r.console.to, r.console.catalog.Agent, r.by()); err != nil {
			r.console.logUnreadable(err)
			skipped = append(skipped, id+": it cannot be written now")
			break
		}
		n++
		r.Record(auth.AuditWrite, session, id, http.StatusSeeOther)
	}
	r.result(n, len(form["id"]), skipped, "/deliveries", "status", delivery.StatusDead)
}

// requeueLetters writes dead letters back to their topics, each once: one, or all that a page has listed. As turntable requeue --all
// does, it leaves out what a group refused, unless it is the only one.
func requeueLetters(r *request, form url.Values) {
	c := r.console
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	select {
	case c.requeuing <- struct{}{}:
		defer func() { <-c.requeuing }()
	case <-ctx.Done():
		r.fail(http.StatusServiceUnavailable, "Nothing was done: others requeue dead letters now. Try again.")
		return
	}
	ids := form["id"][:min(len(form["id"]), mostRequeued)]
	c.mu.Lock()
	brokers, options := c.brokers, c.options
	c.mu.Unlock()
	w, err := operations.NewWriteBack(ctx, brokers, c.catalog, r.by(), options...)
	if err == nil {
		defer w.Close()
		err = c.follower.dead.CatchUp(ctx) // with all marks of those who wrote before
	}
	if err != nil {
		c.logUnreadable(err)
		r.fail(http.StatusServiceUnavailable, "Nothing was done: the brokers do not answer. Try again.")
		return
	}
	n, skipped := 0, []string{}
	for _, id := range ids {
		why, err := c.requeueLetter(ctx, r, w, id, len(ids) == 1)
		switch {
		case err != nil && !errors.Is(err, operations.ErrNotWritten):
			c.logUnreadable(err)
			skipped = append(skipped, id+": "+visible(err.Error()))
			r.result(n, len(ids), skipped, "/letters")
			return
		case err != nil:
			skipped = append(skipped, id+": "+visible(err.Error()))
		case why != "":
			skipped = append(skipped, id+": "+visible(why))
		default:
			n++
			r.Record(auth.AuditWrite, "", id, http.StatusSeeOther)
		}
	}
	r.result(n, len(ids), skipped, "/letters")
}

// requeueLetter writes a letter back. why says why it was not.
func (c *Console) requeueLetter(ctx context.Context, r *request, w *operations.WriteBack, id string, alone bool) (why string, err error) {
	x := c.follower.index
	x.mu.Lock()
	known := x.letters.byID[id]
	var l operations.Letter
	if known != nil {
		l = x.letters.judged(operations.LetterTopic(goka.Group(known.Group)), known)
	}
	x.mu.Unlock()
	if known == nil || !r.Caller.Allowed(known.Key) {
		return "there is no such dead letter any more", nil
	}
	if why = l.Unfit(c.catalog, c.exists); why == "" && !alone {
		if why = l.Refused(c.catalog); why == "" && l.FailedAgain {
			why = "it failed again after it was requeued: requeue it alone"
		}
	}
	if why != "" {
		return why, nil
	}
	record, err := c.readLetter(r, &l)
	switch {
	case errors.Is(err, errGone):
		return "it was deleted by age", nil
	case err != nil:
		return "", err
	}
	mark, err := w.Write(ctx, &l, record)
	if err == nil {
		topic := operations.LetterTopic(goka.Group(l.Group))
		x.mu.Lock()
		x.letters.mark(topic, mark)
		x.mu.Unlock()
	}
	return "", err
}

// result says how many of several things were done. One that was done is a redirect, so that a reload repeats nothing.
func (r *request) result(n, of int, skipped []string, page string, parameters ...any) {
	if n == of && of > 0 {
		r.to("requeued", page, parameters...)
		return
	}
	r.show(http.StatusOK, "message", pageOf("Requeue", page, resultText(n, of), skipped))
}

func resultText(n, of int) string {
	if of == 0 {
		return "Nothing was chosen."
	}
	return count(n) + " of " + count(of) + " were requeued. The others are listed above, or are not dead any more."
}

func pageOf(title, section, body string, list []string) page {
	return page{Title: title, Section: section, Body: body, Notices: list}
}
