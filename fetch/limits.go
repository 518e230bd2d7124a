package fetch

import "time"

// What is read from outside is bounded by these and by the limits of package manifest. Sizes are bytes.
const (
	// entriesLimit bounds the memory that an index of tiny entries takes; the format has room for about 100,000 real ones.
	entriesLimit = 500_000
	// headerLimit bounds an answer's head; ours are under a kibibyte.
	headerLimit = 256 << 10
	// pointerLimit bounds the small JSON file that names the cached index; ours has about 500 bytes.
	pointerLimit = 64 << 10
	// caFileLimit bounds one certificate file; distribution bundles have about 250 KiB.
	caFileLimit = 8 << 20
	// caDirLimit bounds the number of files read from a certificate folder; distributions ship about 300.
	caDirLimit = 2000
)

// How long we wait. There is no limit on a whole transfer: a slow link may take its time as long as bytes come.
const (
	// connectLimit bounds a TCP connection; slower paths than this do not carry a download either.
	connectLimit = 10 * time.Second
	// tlsLimit bounds the TLS handshake.
	tlsLimit = 10 * time.Second
	// answerLimit bounds the wait for an answer's head after the request was sent.
	answerLimit = 20 * time.Second
	// idleLimit bounds the time between two bytes of a body.
	idleLimit = 20 * time.Second
	// rateWindow and rateFloor refuse a drip: fewer than rateFloor bytes in a window end the transfer. A 56k modem
	// shared by eight transfers is just above it.
	rateWindow = 30 * time.Second
	rateFloor  = 16 << 10
)

// How often we ask again.
const (
	// retries is how often a request is repeated; with retryFirst doubling, an outage costs under two seconds.
	retries = 3
	// retriesCached is for the index when an older one is here: a silent network then costs a read half a minute at most.
	retriesCached = 1
	// stallsMost is how often a transfer that stalled is begun again: each costs as long as the wait that found it.
	stallsMost = 1
	retryFirst = 250 * time.Millisecond
	retryMost  = 4 * time.Second
	// retryAfterMost is the longest wait that a server may ask for; above it we stop and say so.
	retryAfterMost = 30 * time.Second
	// redirectsMost is the number of hops followed; honest hosts need one or two.
	redirectsMost = 5
)

// freshFor is how long a cached index is used without asking the network.
const freshFor = time.Hour

// parallelFiles is the number of downloads that run at a time, over all bundles of a marketplace. Measured against 8
// and 16 (BenchmarkInstall): at 20 ms latency 32 is needed to beat 32 parallel curl transfers.
const parallelFiles = 32
