package invoke

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The headers with the trace and span ids, in requests and responses.
const (
	HeaderTrace  = "X-Ag-Trace-Id"
	HeaderSpan   = "X-Ag-Span-Id"
	headerParent = "Traceparent"
)

// Trace is a request's position in a trace, in lower-case hex.
type Trace struct {
	// TraceID has 32 digits.
	TraceID string
	// SpanID is the request's own span, ParentID the caller's span or empty. Each has 16 digits.
	SpanID, ParentID string
}

// traceOf continues the caller's trace, from the header traceparent or else from HeaderTrace and HeaderSpan, or begins a
// trace.
func traceOf(h http.Header, random io.Reader) (Trace, error) {
	var t Trace
	trace, parent, ok := parentOf(h.Get(headerParent))
	if !ok {
		trace, parent = h.Get(HeaderTrace), h.Get(HeaderSpan)
		ok = isHex(trace, 32) && isHex(parent, 16)
	}
	if ok {
		t.TraceID, t.ParentID = trace, parent
	}
	var b [24]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return Trace{}, fmt.Errorf("invoke: no randomness: %w", err)
	}
	if t.TraceID == "" {
		t.TraceID = hex.EncodeToString(b[:16])
	}
	t.SpanID = hex.EncodeToString(b[16:])
	return t, nil
}

// parentOf parses a traceparent header.
func parentOf(s string) (trace, span string, ok bool) {
	parts := strings.Split(strings.TrimSpace(s), "-")
	if len(parts) < 4 || !isHex(parts[0], 2) || parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 {
		return "", "", false
	}
	return parts[1], parts[2], isHex(parts[1], 32) && isHex(parts[2], 16)
}

// isHex reports whether s is n lower-case hex digits, not all of them zero unless there are two.
func isHex(s string, n int) bool {
	if len(s) != n || n > 2 && strings.Trim(s, "0") == "" {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

// mint returns a new session id: the 32 digits of a random UUID.
func mint(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("invoke: no randomness: %w", err)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return hex.EncodeToString(b[:]), nil
}
