package wiretest

func readStep(at Coord, from origin, session string, o object) step {
	s := step{
		at: at, origin: from, session: session, history: sequenceOf(o.list("history")), cost: o.number("cost"),
		user: o.text("user_id"),
	}
	if latest, err := objectIn(o.raw("latest_input")); err == nil {
		s.content, s.input = contentOf(latest), inputOf(latest)
		if role := latest.text("role"); role != nil {
			s.role = *role
		}
	}
	return s
}

func readCallRecord(at Coord, from origin, session string, o object) call {
	return call{
		at: at, origin: from, session: session, total: int(integerOf(o, "total_tools")),
		item: toolItem{id: o.text("tool_use_id"), name: o.text("name")},
	}
}

// resultDigest returns a digest of the fields of a result that must be the same in a complete set and a tool message.
func resultDigest(id *string, status string, value digest) digest {
	return digestOf([]byte(nullable(id)), []byte(status), value[:])
}

func readSet(at Coord, from origin, session string, o object) set {
	s := set{at: at, origin: from, session: session, count: int(integerOf(o, "expected_count"))}
	for _, e := range o.list("results") {
		if r, err := objectIn(e); err == nil {
			s.results = append(s.results, readEntry(r).digest())
		}
	}
	for _, e := range o.list("expected") {
		if x, err := objectIn(e); err == nil {
			s.expected = append(s.expected, toolItem{id: x.text("tool_use_id"), name: x.text("name")})
		}
	}
	return s
}

func readToolMessage(at Coord, from origin, session string, o object) (toolMessage, string) {
	t := toolMessage{at: at, origin: from, session: session, content: contentOf(o)}
	for _, e := range o.list("content") {
		x, err := objectIn(e)
		if err != nil {
			return t, "content element is not an object"
		}
		t.entries = append(t.entries, readEntry(x))
	}
	meta, err := objectIn(o.raw("metadata"))
	if err != nil {
		return t, "metadata is not an object"
	}
	results := meta.list("tool_results")
	if int(integerOf(meta, "tool_count")) != len(t.entries) || len(results) != len(t.entries) {
		return t, "metadata.tool_count, tool_results and content differ in length"
	}
	bulk := 0
	for _, e := range t.entries {
		bulk += e.size
	}
	for i, e := range results {
		if problem := shapeProblemIn(e, resultShape); problem != "" {
			return t, inField("metadata.tool_results", problem)
		}
		x, err := objectIn(e)
		if err != nil {
			return t, "metadata.tool_results element is not an object"
		}
		full, entry := readEntry(x), t.entries[i]
		if bulk > metadataLimit && full.size <= stubSize {
			full.value = entry.value
		}
		if full.digest() != entry.digest() {
			return t, "metadata.tool_results and content differ"
		}
	}
	if s := meta.text("source"); s == nil || *s != "tool-execution" {
		return t, "metadata.source is not tool-execution"
	}
	return t, ""
}

// Results of more than large bytes together may be left out of the metadata of a tool message, which repeats them; a
// stub of few bytes may replace each.
const (
	metadataLimit = 64 << 10
	stubSize      = 64
)

func readEntry(x object) entry {
	e := entry{item: toolItem{id: x.text("tool_use_id"), name: x.text("name")}, size: len(x["result"])}
	e.value = digestOf(wrapped(x["result"]))
	if s := x.text("status"); s != nil {
		e.status = *s
	}
	if v, err := objectIn(x.raw("result")); err == nil && e.status == "error" {
		if reason, text := v.text("reason"), v.text("error"); reason != nil && text != nil {
			e.reason = *reason
		}
	}
	return e
}

func readOutput(at Coord, from origin, session string, o object) (outputRecord, string) {
	e := outputRecord{
		at: at, origin: from, session: session, input: integerOf(o, "input_tokens"), output: integerOf(o, "output_tokens"),
		cost: o.number("cost"), user: o.text("user_id"), request: o.text("request_id"),
	}
	content := o.text("content")
	if content == nil {
		return e, "content is not a string"
	}
	e.answer = digestOf([]byte(*content))
	if s := o.text("source_agent"); s != nil {
		e.agent = *s
	}
	if v := o.raw("reply_to"); v != nil {
		d := digestOf(compact(v))
		e.route = &d
	}
	status, failure := o.text("status"), o.raw("error")
	if (status != nil) != (failure != nil) {
		return e, "only one of status and error is present"
	}
	if status == nil {
		return e, ""
	}
	e.isError = true
	x, err := objectIn(failure)
	if err != nil || *status != "error" {
		return e, "status is not error, or error is not an object"
	}
	if s := x.text("code"); s != nil {
		e.code = *s
	}
	if s := x.text("message"); s == nil || *s != *content {
		return e, "content is not the error's message"
	}
	if e.input != 0 || e.output != 0 {
		return e, "tokens of an error are not 0"
	}
	return e, ""
}
