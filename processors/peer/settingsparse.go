package peer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
)

// maxDepth is the largest nesting depth of a file.
const maxDepth = 64

// ParseSettings reads a configuration. lookup reads environment variables: it is os.LookupEnv, or reads a map in a test. A file
// without the member peers has the defaults, which are not enabled. The error wraps ErrSettings and names every mistake, with
// its entry and member.
func ParseSettings(content []byte, lookup func(string) (string, bool)) (*Settings, error) {
	if len(content) > maxSettingsSize {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrSettings, maxSettingsSize)
	}
	if codec.Deeper(content, maxDepth) {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrSettings, maxDepth)
	}
	p := &parser{lookup: lookup}
	s := p.settings(p.peers(content))
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return s, nil
}

// parser collects the mistakes of a configuration.
type parser struct {
	lookup func(string) (string, bool)
	errs   []error
}

// fail reports a mistake. Texts never contain values of the file.
func (p *parser) fail(path, text string) {
	p.errs = append(p.errs, fmt.Errorf("%w: %s: %s", ErrSettings, path, text))
}

// lineOf returns where a file is not JSON, empty if that is not known. The text of the error may quote the file.
func lineOf(content []byte, err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) || syntax.ByteOffset > int64(len(content)) {
		return ""
	}
	return "; see line " + strconv.Itoa(1+bytes.Count(content[:syntax.ByteOffset], []byte("\n")))
}

// peers returns the member peers of a file.
func (p *parser) peers(content []byte) *settingsObject {
	top, err := members(content)
	if err != nil {
		p.fail("file", "want one JSON object, without duplicate members"+lineOf(content, err))
		return &settingsObject{p: p}
	}
	peers := &settingsObject{p: p, path: "peers"}
	missing := !slices.ContainsFunc(top, func(m member) bool { return m.name == "peers" })
	for _, m := range top {
		if missing && (m.name == "inboundTokens" || m.name == "outbound" || m.name == "instanceId") {
			p.fail(m.name, "want it in the member peers")
		}
		if m.name != "peers" || m.value.Kind() == 'n' {
			continue
		}
		if peers.members, err = members(m.value); err != nil {
			p.fail("peers", "want an object")
		}
	}
	return peers
}

func (p *parser) settings(o *settingsObject) *Settings {
	o.known("enabled", "instanceId", "instanceName", "outbound", "inboundTokens", "defaultOutboundTimeoutMs",
		"inboundMaxConcurrent", "maxHops")
	p.environment(o)
	s := &Settings{
		Enabled: o.boolean("enabled"), InstanceID: o.name("instanceId"), InstanceName: o.name("instanceName"),
		InboundMaxConcurrent: int(o.number("inboundMaxConcurrent", defaultMaxConcurrent, 1, MaxConcurrent)),
		MaxHops:              int(o.number("maxHops", defaultMaxHops, 1, MaxHops)),
	}
	if s.Enabled && s.InstanceID == "" {
		o.fail("instanceId", "blank; want an ID that no other instance has, because enabled is true")
	}
	timeout := o.duration("defaultOutboundTimeoutMs", DefaultTimeout)
	for _, entry := range o.entries("outbound") {
		s.Outbound = put(s.Outbound, p.outbound(entry, timeout), func(a, b Outbound) bool { return a.ID == b.ID })
	}
	for _, entry := range o.entries("inboundTokens") {
		s.Inbound = put(s.Inbound, p.inbound(entry, s.InboundMaxConcurrent), func(a, b Inbound) bool {
			return a.TokenSHA256 == b.TokenSHA256
		})
	}
	return s
}

// put replaces the entry that is the same as v, in its place, or appends v.
func put[T any](list []T, v T, same func(a, b T) bool) []T {
	for i := range list {
		if same(list[i], v) {
			list[i] = v
			return list
		}
	}
	return append(list, v)
}

func (p *parser) outbound(o *settingsObject, timeout time.Duration) Outbound {
	o.known("id", "baseUrl", "token", "tokenEnv", "description", "allowedAgentIds", "timeoutMs")
	return Outbound{
		ID: o.required("id", o.name("id")), BaseURL: o.baseURL("baseUrl"), Token: NewSecret(o.outboundToken()),
		Description: o.text("description"), AllowedAgents: o.names("allowedAgentIds"),
		Timeout: o.duration("timeoutMs", timeout),
	}
}

func (p *parser) inbound(o *settingsObject, concurrent int) Inbound {
	o.known("id", "token", "tokenSha256", "allowedAgentIds", "maxConcurrent", "allowedTools", "callbackService")
	return Inbound{
		ID: o.required("id", o.name("id")), TokenSHA256: o.inboundHash(), AllowedAgents: o.names("allowedAgentIds"),
		MaxConcurrent: int(o.number("maxConcurrent", int64(concurrent), 1, MaxConcurrent)),
		AllowedTools:  o.names("allowedTools"), CallbackService: o.name("callbackService"),
	}
}

func (o *settingsObject) outboundToken() string {
	token, variable := o.text("token"), o.text("tokenEnv")
	switch {
	case token != "" && variable != "":
		o.fail("tokenEnv", "want either token or tokenEnv")
	case token != "":
		return o.usable("token", token)
	case variable != "":
		token, _ := o.p.lookup(variable)
		if token = strings.TrimSpace(token); token == "" {
			o.fail("tokenEnv", "the environment variable that it names is unset or blank")
		}
		return o.usable("tokenEnv", token)
	default:
		o.fail("token", "blank; want token or tokenEnv")
	}
	return ""
}

func (o *settingsObject) inboundHash() (sum [sha256.Size]byte) {
	token, digits := o.text("token"), o.text("tokenSha256")
	switch {
	case token != "" && digits != "":
		o.fail("tokenSha256", "want either token or tokenSha256")
	case token != "":
		return sha256.Sum256([]byte(o.usable("token", token)))
	case digits != "":
		if n, err := hex.Decode(sum[:], []byte(digits[:min(len(digits), 2*len(sum))])); err != nil || n != len(sum) ||
			len(digits) != 2*len(sum) {
			o.fail("tokenSha256", "want 64 hexadecimal digits")
		}
	default:
		o.fail("token", "blank; want token or tokenSha256")
	}
	return sum
}

// usable checks that a header can carry a token.
func (o *settingsObject) usable(name, token string) string {
	if len(token) > maxToken {
		o.fail(name, fmt.Sprintf("longer than %d bytes", maxToken))
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		o.fail(name, "a character of it is not printable ASCII, so that no header can carry it")
	}
	return token
}

func (o *settingsObject) baseURL(name string) string {
	text := o.text(name)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(text, "?#") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		o.fail(name, "want an http or https URL without user, query and fragment")
		return ""
	}
	return strings.TrimRight(text, "/")
}

// members returns the members of the one JSON object of raw.
func members(raw []byte) ([]member, error) {
	var list []member
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	if dec.PeekKind() != '{' {
		return nil, errors.New("no object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		list = append(list, member{name: text, value: value.Clone()})
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if dec.PeekKind() != 0 || dec.InputOffset() < int64(len(strings.TrimRight(string(raw), " \t\r\n"))) {
		return nil, errors.New("text after the object")
	}
	return list, nil
}
