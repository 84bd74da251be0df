package console

import (
	"net/http"
	"net/url"

	"github.com/turntable-streams/turntable/processors/auth"
)

// allRoutes are the pages and actions by method and path below Config.Root. IDs are parameters, because they can have any characters.
func (c *Console) allRoutes() map[string]route {
	return map[string]route{
		"GET /": attention, "GET /sessions": sessions, "GET /session": showSession, "GET /gates": gates, "GET /gate": showGate,
		"GET /deliveries": deliveries, "GET /letters": showLetters, "GET /letter": showLetter, "GET /processors": groups,
		"GET /costs": costs, "GET /changes": nil, "GET /crews": crewsOn(crews),
		"POST /session/cancel": action(auth.Control, cancel), "POST /session/purge": action(auth.Control, purge),
		"POST /gate/decide": action(auth.Answer, decide), "POST /deliveries/requeue": action(auth.Control, requeueDeliveries),
		"POST /crews/permission": crewsOn(action(auth.Answer, answerCrew)), "POST /crews/message": crewsOn(action(auth.Write, writeCrew)),
		"POST /letters/requeue": action(auth.Control, requeueLetters),
	}
}

// action reads the form of an action, if the caller may do it.
func action(needed auth.Rights, do func(*request, url.Values)) route {
	return func(r *request) {
		if !r.can(needed) {
			r.Record(auth.AuditRefuse, "", "", http.StatusForbidden)
			r.fail(http.StatusForbidden, "You may not do this: it needs the right "+needed.String()+", and a console with authentication.")
			return
		}
		body, refusal := r.ReadBody(r.w)
		if refusal != nil {
			r.fail(refusal.Status, refusal.Text)
			return
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			r.fail(http.StatusBadRequest, "The form cannot be read.")
			return
		}
		do(r, form)
	}
}

// crewsOn serves a page of crews, if the console has any.
func crewsOn(serve route) route {
	return func(r *request) {
		if r.console.config.Crews == nil {
			r.fail(http.StatusNotFound, "The console has no crews: see console.Config.Crews.")
			return
		}
		serve(r)
	}
}

// enter checks that the caller may use the session of an action. It answers the request otherwise.
func (r *request) enter(session string) bool {
	if refusal := r.Visit.Session(session); refusal != nil {
		r.fail(refusal.Status, refusal.Text)
		return false
	}
	return true
}

// sayings are what a page says after an action.
var sayings = map[string]string{
	"cancelled":  "The turn has ended: it was cancelled, unless it ended before.",
	"purged":     "The session was purged.",
	"decided":    "Your decision counts.",
	"requeued":   "Requeued.",
	"sent":       "The message was sent.",
	"written":    "The record is written, but its effect was not seen yet. This page changes when it is.",
	"!stale":     "Nothing was done: the turn had ended, or another one is open now. What is shown here is what there is.",
	"!other":     "Your decision does not count: the gate has ended in another way, which is shown here.",
	"!unwritten": "The brokers did not acknowledge the record: it is not known whether it is written. Look before you try again.",
}

// saying returns what the parameter said stands for, and whether the action had no effect.
func saying(said string) (text string, failed bool) {
	if text, failed = sayings["!"+said]; failed {
		return text, true
	}
	return sayings[said], false
}
