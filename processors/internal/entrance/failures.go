package entrance

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/auth"
)

// The limits of failed authentications. An address, or an account, has a bucket from which each failure takes a token.
const (
	addressFailures = 50
	addressEvery    = 2 * time.Second
	accountFailures = 100
	accountEvery    = 10 * time.Second
	// fewFailures is how many an address may have whose tries for an account do not count as part of an attack on it: strangers
	// must not lock out the owner of an account by failing in its name.
	fewFailures = 3
	// mostDebt bounds how far requests that failed at the same time overdraw a bucket.
	mostDebt = 15
	// maxAccount is the longest name of an account that is told apart from others, in bytes.
	maxAccount = 256
)

// Failures limits failed authentications by address and by account, so that no one can try out credentials. It remembers the most
// recent addresses and accounts that failed. It is safe for concurrent use.
type Failures struct {
	addresses, accounts *lru.Cache[string, *rate.Limiter]
	accepted            *lru.Cache[[sha256.Size]byte, struct{}]
	key                 [sha256.Size]byte // of the digests of accepted credentials
}

// NewFailures returns Failures that remember so many addresses, and as many accounts. keys is at least 1.
func NewFailures(keys int) *Failures {
	f := &Failures{}
	f.addresses, _ = lru.New[string, *rate.Limiter](keys) // the only error is that of a size below 1
	f.accounts, _ = lru.New[string, *rate.Limiter](keys)
	f.accepted, _ = lru.New[[sha256.Size]byte, struct{}](keys)
	_, _ = rand.Read(f.key[:])
	return f
}

// Try reports whether a secret is that of an account, as check says. check is not called if wait is positive: the address must wait
// so long, because it has failed too often.
func (f *Failures) Try(address, account, secret string, now time.Time, check func() bool) (ok bool, wait time.Duration) {
	h := f.digest()
	put(h, []byte(account))
	put(h, []byte(secret))
	credential := [sha256.Size]byte(h.Sum(nil))
	if !f.accepted.Contains(credential) {
		if wait := f.wait(address, account, now); wait > 0 {
			return false, wait
		}
	}
	if !check() {
		f.accepted.Remove(credential)
		f.count(address, account, now)
		return false, 0
	}
	f.accepted.Add(credential, struct{}{})
	return true, 0
}

// wait returns how long an address must wait before it may try to authenticate as an account, which is empty if it is not known; 0
// if it may try now.
func (f *Failures) wait(address, account string, now time.Time) time.Duration {
	until := func(b *rate.Limiter) time.Duration {
		missing := 1 - b.TokensAt(now)
		return max(0, time.Duration(missing/float64(b.Limit())*float64(time.Second)))
	}
	at, ok := f.addresses.Get(address)
	if !ok {
		return 0
	}
	longest := until(at)
	if of, ok := f.accounts.Get(accountOf(account)); ok && account != "" && at.TokensAt(now) <= addressFailures-fewFailures {
		longest = max(longest, until(of))
	}
	return longest
}

// count counts a failure of an address and, unless it is empty, of an account.
func (f *Failures) count(address, account string, now time.Time) {
	add(f.addresses, address, addressEvery, addressFailures, now)
	if account != "" {
		add(f.accounts, accountOf(account), accountEvery, accountFailures, now)
	}
}

func add(to *lru.Cache[string, *rate.Limiter], key string, every time.Duration, burst int, now time.Time) {
	b := rate.NewLimiter(rate.Every(every), burst)
	if known, ok, _ := to.PeekOrAdd(key, b); ok {
		b = known
	}
	if b.TokensAt(now) > -mostDebt {
		b.ReserveN(now, 1)
	}
}

func accountOf(name string) string { return truncate.Text(name, maxAccount) }

// changing are the headers, and the beginnings of their names, that differ between the requests of a client and have no credential.
var changing = []string{
	"Accept", "Cache-Control", "Connection", "Content-", "Forwarded", "Idempotency-Key", "If-", "Last-Event-Id", "Origin", "Pragma",
	"Prefer", "Priority", "Range", "Referer", "Sec-Ch-", "Sec-Fetch-", "Sec-Websocket-Extensions", "Sec-Websocket-Key",
	"Sec-Websocket-Version", "Te", "Traceparent", "Tracestate", "Upgrade", "User-Agent", "Via", "X-Forwarded-", "X-Real-Ip", "X-Request-Id",
}

// credential returns a keyed digest of everything in a request in which Authenticate may look for a credential: two requests with
// one digest have the same credential. No credential is in a path.
func (f *Failures) credential(r *http.Request) (digest [sha256.Size]byte) {
	h := f.digest()
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if slices.ContainsFunc(changing, func(p string) bool { return name == p || strings.HasSuffix(p, "-") && strings.HasPrefix(name, p) }) ||
			strings.HasPrefix(name, "Accept-") {
			continue
		}
		put(h, []byte(name))
		for _, value := range r.Header[name] {
			put(h, []byte(value))
		}
	}
	put(h, nil)
	put(h, []byte(r.URL.RawQuery))
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		put(h, r.TLS.PeerCertificates[0].Raw)
	}
	return [sha256.Size]byte(h.Sum(digest[:0]))
}

// digest returns a keyed hash.
func (f *Failures) digest() hash.Hash {
	h := sha256.New()
	put(h, f.key[:])
	return h
}

// hasCredential reports whether a request has a credential that clients send on purpose, also one of an unknown kind.
func hasCredential(r *http.Request) bool {
	_, err := auth.Bearer(r)
	return !errors.Is(err, auth.ErrNoCredential) || r.Header.Get("Authorization") != ""
}

// put adds a part to a digest so that parts cannot be divided in another way.
func put(h hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	_, _ = h.Write(length[:]) // a hash returns no error
	_, _ = h.Write(part)
}

// Suspect refuses a request whose address has failed too often to authenticate, before its credential is checked. A credential
// that was accepted before may be used: others behind the same proxy must not lose their access.
func (v *Visit) Suspect() *Refusal {
	f := v.entrance.failures
	wait := f.wait(v.address, "", v.entrance.config.Clock.Now())
	if wait == 0 || f.accepted.Contains(f.credential(v.r)) {
		return nil
	}
	return v.Refuse(tooManyFailures(wait))
}

// Fail counts a request that failed to authenticate, as an account if it is known, and returns the answer to it: refusal, which is
// recorded, or 429.
func (v *Visit) Fail(account string, refusal *Refusal) *Refusal {
	f, now := v.entrance.failures, v.entrance.config.Clock.Now()
	if wait := f.wait(v.address, account, now); wait > 0 {
		refusal = tooManyFailures(wait)
	}
	f.count(v.address, account, now)
	f.accepted.Remove(f.credential(v.r))
	return v.Refuse(refusal)
}

// Fail is Visit.Fail for a request that is no visit.
func (e *Entrance) Fail(r *http.Request, refusal *Refusal) *Refusal {
	return (&Visit{entrance: e, r: r, address: Address(r.RemoteAddr)}).Fail("", refusal)
}

// Accept remembers the credential of a request, which is valid. It refuses one that may be a guess: its address has failed before,
// and failures in the name of the account are many.
func (v *Visit) Accept(account string) *Refusal {
	f, credential := v.entrance.failures, v.entrance.failures.credential(v.r)
	if !f.accepted.Contains(credential) {
		if wait := f.wait(v.address, account, v.entrance.config.Clock.Now()); wait > 0 {
			return v.Refuse(tooManyFailures(wait))
		}
	}
	f.accepted.Add(credential, struct{}{})
	return nil
}

func tooManyFailures(wait time.Duration) *Refusal {
	return tooMany("Too many failed authentications", wait)
}
