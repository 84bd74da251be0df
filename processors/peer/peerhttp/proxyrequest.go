package peerhttp

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
)

// forwarding is the body of a request to ProxyPath.
type forwarding struct {
	peerID, taskID, content      string
	agentID, model               string
	parentRunID, parentSessionID string
	timeout                      time.Duration // 0 if the request does not say
}

var (
	errProxyJSON   = peerwire.Refusal{Status: 400, Code: peerwire.CodeInvalidJSON, Text: "Invalid JSON body"}
	errProxyFields = peerwire.Refusal{
		Status: 400, Code: peerwire.CodeInvalidRequest, Text: "Invalid peer proxy request. Required: peerId, content.",
	}
	errProxyID = peerwire.Refusal{
		Status: 400, Code: peerwire.CodeInvalidRequest,
		Text: "Invalid peer proxy request. An ID is longer than " + strconv.Itoa(peerwire.MaxID) + " characters, or is not valid Unicode.",
	}
)

// readForwarding reads a body. A member of a wrong type counts as absent, like null. A blank body counts as {}.
func readForwarding(body []byte) (f forwarding, refusal *peerwire.Refusal) {
	if peerwire.Trim(string(body)) == "" {
		body = []byte("{}")
	}
	value := jsontext.Value(body)
	if codec.Deeper(body, peerwire.MaxDepth) || !value.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		r := errProxyJSON
		return f, &r
	}
	valid := true
	for name, v := range membersOf(value) {
		if name == "timeoutMs" {
			f.timeout = timeoutOf(v)
			continue
		}
		to := f.text(name)
		if to == nil || v.Kind() != '"' {
			continue
		}
		text, err := jsontext.AppendUnquote(nil, v)
		*to = string(text)
		valid = valid && (err == nil || name == "content")
	}
	f.peerID, f.taskID = peerwire.Trim(f.peerID), peerwire.Trim(f.taskID)
	f.agentID, f.model = peerwire.Trim(f.agentID), peerwire.Trim(f.model)
	for _, id := range []*string{&f.parentRunID, &f.parentSessionID} {
		if peerwire.Trim(*id) == "" {
			*id = ""
		}
	}
	if f.peerID == "" || f.content == "" {
		r := errProxyFields
		return f, &r
	}
	for _, id := range []string{f.peerID, f.taskID, f.agentID, f.model, f.parentRunID, f.parentSessionID} {
		valid = valid && peerwire.Length(id) <= peerwire.MaxID
	}
	if !valid {
		r := errProxyID
		return f, &r
	}
	if f.taskID == "" {
		f.taskID = newTaskID()
	}
	return f, nil
}

// text returns the text with the given name, or nil if there is none.
func (f *forwarding) text(name string) *string {
	switch name {
	case "peerId":
		return &f.peerID
	case "taskId":
		return &f.taskID
	case "content":
		return &f.content
	case "agentId":
		return &f.agentID
	case "model":
		return &f.model
	case "parentRunId":
		return &f.parentRunID
	case "parentSessionId":
		return &f.parentSessionID
	default:
		return nil
	}
}

// timeoutOf reads a number of milliseconds, truncates it, and cuts it to its bounds; 0 if it is none.
func timeoutOf(v jsontext.Value) time.Duration {
	ms, err := strconv.ParseFloat(string(v), 64)
	if v.Kind() != '0' || err != nil {
		return 0
	}
	ms = min(max(math.Trunc(ms), float64(peer.MinTimeout.Milliseconds())), float64(peer.MaxTimeout.Milliseconds()))
	return time.Duration(ms) * time.Millisecond
}

// membersOf returns the members of a valid value, none if it is no object. Of duplicates it has the last one.
func membersOf(value jsontext.Value) map[string]jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	members := map[string]jsontext.Value{}
	if dec.PeekKind() != '{' {
		return members
	}
	if _, err := dec.ReadToken(); err != nil {
		return members
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return members
		}
		name := token.String()
		v, err := dec.ReadValue()
		if err != nil {
			return members
		}
		members[name] = v.Clone()
	}
	return members
}

// newTaskID returns a random UUID.
func newTaskID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
