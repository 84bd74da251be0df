// Package admission decides which of the waiting calls may begin. It has no clock and does no I/O: the caller passes the time
// and performs the decisions.
//
// A call needs buckets, for example those of its tool and of its tenant. It begins when every one of them has place for it;
// until then it holds nothing. A bucket bounds how many calls run at a time and how many units they take per second, and can
// be paused.
//
// Sessions take turns: of the calls that may begin, one of the session that waits in the earliest round is next, and after it
// the session waits in a later round. Of sessions in the same round, the one that runs fewer calls is first. However many calls
// a session has waiting, at most two of them begin before the next call of another session. Calls of a session begin in the order of their arrival, except that a call whose buckets are full
// does not hold up the calls behind it.
//
// The state is bounded by the calls that wait or run. A bucket that no call needs is kept only while it is paused or fills up.
package admission
