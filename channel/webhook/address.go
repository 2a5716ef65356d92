package webhook

import "net/netip"

// reach is how far an address may be trusted with a connection.
type reach int

const (
	public   reach = iota
	private        // inside of a network: only where that is allowed
	loopback       // this host: only where the URL names it so
	never
)

// verdict is what an address is, for programs and for people.
type verdict struct {
	reach reach
	what  string
}

// rule says what the addresses of a prefix are.
type rule struct {
	prefix netip.Prefix
	verdict
}

// rules are the addresses that are not simply public; of several that contain an
// address the first counts. The sources are the registries of special-purpose
// addresses at IANA (iana-ipv4-special-registry, iana-ipv6-special-registry: RFC 6890
// and its updates), those of multicast addresses, and the manuals of the clouds for
// the metadata services. Where a registry has a globally reachable exception within a
// reserved block (192.0.0.9, 2001:1::1, …) it stays refused: nobody's receiver is there.
var rules = []rule{
	// Metadata services: whoever asks them gets the credentials of the machine.
	of("100.100.100.200/32", never, metadata), // Alibaba
	of("168.63.129.16/32", never, metadata),   // Azure's wire server
	of("169.254.169.254/32", never, metadata), // most others
	of("192.0.0.192/32", never, metadata),     // Oracle
	of("fd00:42::42/128", never, metadata),    // Scaleway
	of("fd00:ec2::/32", never, metadata),      // Amazon
	of("fd20:ce::254/128", never, metadata),   // Google

	of("0.0.0.0/32", never, "the unspecified address"),
	of("0.0.0.0/8", never, "a reserved address"), // "this network", RFC 791
	of("10.0.0.0/8", private, inside),            // RFC 1918
	of("100.64.0.0/10", private, inside),         // shared by carriers, RFC 6598
	of("127.0.0.0/8", loopback, "a loopback address"),
	of("169.254.0.0/16", never, "a link-local address"), // RFC 3927
	of("172.16.0.0/12", private, inside),                // RFC 1918
	of("192.0.0.0/24", never, "a reserved address"),     // protocol assignments, RFC 6890
	of("192.0.2.0/24", never, example),                  // RFC 5737
	of("192.88.99.0/24", never, "a reserved address"),   // relays of 6to4, RFC 7526
	of("192.168.0.0/16", private, inside),               // RFC 1918
	of("198.18.0.0/15", never, "a reserved address"),    // benchmarks, RFC 2544
	of("198.51.100.0/24", never, example),               // RFC 5737
	of("203.0.113.0/24", never, example),                // RFC 5737
	of("224.0.0.0/4", never, "a multicast address"),     // RFC 5771
	of("255.255.255.255/32", never, "the broadcast address"),
	of("240.0.0.0/4", never, "a reserved address"), // RFC 1112

	of("::/128", never, "the unspecified address"),
	of("::1/128", loopback, "a loopback address"),
	of("::/96", never, "a reserved address"), // IPv4-compatible, RFC 4291
	// NAT64 of a network's own: where the IPv4 address stands in it is known only there.
	of("64:ff9b:1::/48", never, "a reserved address"), // RFC 8215
	of("100::/64", never, "a reserved address"),       // discarded, RFC 6666
	of("2001::/23", never, "a reserved address"),      // protocol assignments, RFC 2928
	of("2001:db8::/32", never, example),               // RFC 3849
	of("3fff::/20", never, example),                   // RFC 9637
	of("fc00::/7", private, inside),                   // unique local, RFC 4193
	of("fe80::/10", never, "a link-local address"),    // RFC 4291
	of("fec0::/10", never, "a reserved address"),      // site-local, RFC 3879
	of("ff00::/8", never, "a multicast address"),      // RFC 4291
}

const (
	metadata = "the address of a cloud's metadata service"
	inside   = "a private address"
	example  = "an address for examples only"
)

func of(prefix string, r reach, what string) rule {
	return rule{netip.MustParsePrefix(prefix), verdict{r, what}}
}

// allocated is all of IPv6 that is given out as public. What is outside of it, and in
// no rule, is nobody's yet.
var allocated = netip.MustParsePrefix("2000::/3")

// judge says what an address is. One that carries another is what the other is.
func judge(a netip.Addr) verdict {
	if !a.IsValid() || a.Zone() != "" {
		return verdict{never, "an address of one network card only"}
	}
	a = a.Unmap()
	if inner := carried(a); len(inner) > 0 {
		return judgeCarried(inner)
	}
	for _, r := range rules {
		if r.prefix.Contains(a) {
			return r.verdict
		}
	}
	if a.Is6() && !allocated.Contains(a) {
		return verdict{never, "a reserved address"}
	}
	return verdict{public, "a public address"}
}

var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixTo4 = netip.MustParsePrefix("2002::/16")    // RFC 3056
	teredo = netip.MustParsePrefix("2001::/32")    // RFC 4380
)

// carried are the IPv4 addresses that an IPv6 address leads to by way of a gateway.
func carried(a netip.Addr) []netip.Addr {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[12:]))}
	case sixTo4.Contains(a):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case teredo.Contains(a): // the server, and the client with every bit turned
		client := [4]byte{^b[12], ^b[13], ^b[14], ^b[15]}
		return []netip.Addr{netip.AddrFrom4([4]byte(b[4:8])), netip.AddrFrom4(client)}
	}
	return nil
}

// judgeCarried is the worst of what is carried. To be carried to loopback is to reach
// the gateway's own services, so that is never allowed.
func judgeCarried(inner []netip.Addr) verdict {
	worst := verdict{public, "a public address"}
	for _, a := range inner {
		v := judge(a)
		if v.reach == loopback {
			v.reach = never
		}
		if v.reach > worst.reach {
			worst = verdict{v.reach, "an address that leads to " + v.what}
		}
	}
	return worst
}

// judgeFor judges an address for one endpoint: nil, or why it is not connected to.
func (c *Channel) judgeFor(e endpoint, a netip.Addr) error {
	v := judge(a)
	switch {
	case v.reach == public && !e.loopback, v.reach == private && c.allowPrivate, v.reach == loopback && e.loopback:
		return nil
	}
	return &blocked{host: e.host, addr: a, what: v.what}
}

// blocked says that an address is not connected to.
type blocked struct {
	host string
	addr netip.Addr
	what string
}

// Error does not show the address of a name: who may register a webhook need not learn
// how names resolve inside.
func (b *blocked) Error() string {
	return "Nothing was sent: " + b.host + " has " + b.what + ", which is not allowed here."
}
