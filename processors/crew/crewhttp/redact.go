package crewhttp

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// redacted replaces a secret in texts that are shown.
const redacted = "[REDACTED]"

// secret is a pattern of texts that are not shown. The group "keep" in front of a secret stays.
type secret struct {
	*regexp.Regexp
	// hints are texts of which one is in every text that the pattern matches: to look for them takes much less time. Those of a
	// pattern that ignores case are in lower case.
	hints []string
}

func secretOf(hints, pattern string) secret {
	return secret{regexp.MustCompile(pattern), strings.Split(hints, "|")}
}

var secrets = []secret{
	// Keys in PEM, also one whose end was cut off.
	secretOf("PRIVATE KEY-----", `-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
	// JSON Web Tokens.
	secretOf("eyJ", `\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
	// Keys and tokens of services, by their prefixes.
	secretOf("sk-|sk_|pk-|pk_|rk-|rk_", `\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}`),
	secretOf("ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-",
		`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})`),
	secretOf("xox", `\bxox[abeoprs]-[A-Za-z0-9-]{10,}`),
	secretOf("AKIA|ASIA", `\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
	secretOf("AIza", `\bAIza[A-Za-z0-9_-]{30,}`),
	secretOf("npm_", `\bnpm_[A-Za-z0-9]{30,}`),
	// Tokens of HTTP.
	secretOf("bearer|basic", `(?i)(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/-]{16,}=*`),
	// Passwords in connection strings.
	secretOf("://", `(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@"']*:)[^\s@/"']+@`),
	// Values of environment variables and members with telling names.
	secretOf("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL",
		`(?P<keep>\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)[A-Z0-9_]*\s*=\s*["']?)[^\s"']{4,}`),
	secretOf("apikey|api_key|api-key|accesstoken|access_token|access-token|authtoken|auth_token|auth-token|"+
		"clientsecret|client_secret|client-secret|password|passwd",
		`(?i)(?P<keep>["']?\b(?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;}]{4,}`),
}

// hinted reports whether a text may have the secret. lower is the text in lower case.
func (s secret) hinted(text, lower string) bool {
	if strings.HasPrefix(s.String(), "(?i)") {
		text = lower
	}
	return slices.ContainsFunc(s.hints, func(hint string) bool { return strings.Contains(text, hint) })
}

// Redact replaces what looks like a secret in a text by "[REDACTED]": private keys, JSON Web Tokens, keys and tokens of known
// services, credentials of HTTP, passwords in URLs, and values of variables and members with names such as API_KEY or password.
// It finds what has such a form, so it may miss a secret, and may replace a text that is none.
func Redact(text string) string {
	lower := lowered(text)
	for _, s := range secrets {
		if !s.hinted(text, lower) || !s.MatchString(text) {
			continue
		}
		replacement := redacted
		if s.SubexpIndex("keep") > 0 {
			replacement = "${keep}" + redacted
			if strings.HasSuffix(s.String(), "@") {
				replacement += "@"
			}
		}
		text = s.ReplaceAllString(text, replacement)
	}
	return text
}

// unusual are the characters outside ASCII that patterns without regard to case take for an s or a k.
var unusual = strings.NewReplacer("\u017f", "s", "\u212a", "k")

func lowered(text string) string { return unusual.Replace(strings.ToLower(text)) }

func mayHaveSecret(text string) bool {
	lower := lowered(text)
	return slices.ContainsFunc(secrets, func(s secret) bool { return s.hinted(text, lower) })
}

// redactJSON applies Redact to every text of a JSON value, but not to names. A value that cannot be read is withheld.
func redactJSON(value topics.Raw) topics.Raw {
	if len(value) == 0 || !mayHaveSecret(string(value)) && !bytes.Contains(value, []byte(`\u`)) && !bytes.Contains(value, []byte(`\/`)) {
		return value
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			break
		}
		kind, length := dec.StackIndex(dec.StackDepth())
		if isName := kind == '{' && length%2 == 1; token.Kind() == '"' && !isName {
			token = jsontext.String(Redact(token.String()))
		}
		if enc.WriteToken(token) != nil {
			return topics.Raw("null")
		}
	}
	raw := bytes.TrimSpace(out.Bytes())
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return topics.Raw("null")
	}
	return raw
}
