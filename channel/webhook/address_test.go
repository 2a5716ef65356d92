package webhook

import (
	"net/netip"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		addr string
		want reach
	}{
		{"8.8.8.8", public},
		{"1.0.0.0", public},
		{"9.255.255.255", public},
		{"11.0.0.0", public},
		{"100.63.255.255", public},
		{"100.128.0.0", public},
		{"126.255.255.255", public},
		{"128.0.0.0", public},
		{"172.15.255.255", public},
		{"172.32.0.0", public},
		{"192.167.255.255", public},
		{"192.169.0.0", public},
		{"223.255.255.255", public},
		{"2606:4700::1111", public},
		{"2001:200::1", public},
		{"::ffff:8.8.8.8", public},
		{"64:ff9b::808:808", public},
		{"2002:808:808::1", public},
		{"2001:0:808:808::f7f7:f7f7", public},

		{"10.0.0.0", private},
		{"10.255.255.255", private},
		{"172.16.0.0", private},
		{"172.31.255.255", private},
		{"192.168.255.255", private},
		{"100.64.0.0", private},
		{"100.127.255.255", private},
		{"fc00::1", private},
		{"fdff:ffff::1", private},
		{"::ffff:10.0.0.1", private},
		{"64:ff9b::10.0.0.1", private},
		{"2002:c0a8:1::", private},

		{"127.0.0.1", loopback},
		{"127.255.255.255", loopback},
		{"::1", loopback},
		{"::ffff:127.0.0.1", loopback},

		{"64:ff9b::127.0.0.1", never},
		{"2002:7f00:1::", never},
		{"2001:0:808:808::80ff:fffe", never},
		{"2001:0:7f00:1::f7f7:f7f7", never},
		{"64:ff9b:1::8.8.8.8", never},
		{"64:ff9b:2::8.8.8.8", never},
		{"0.0.0.0", never},
		{"0.1.2.3", never},
		{"169.254.0.1", never},
		{"169.254.169.254", never},
		{"::ffff:169.254.169.254", never},
		{"64:ff9b::169.254.169.254", never},
		{"100.100.100.200", never},
		{"168.63.129.16", never},
		{"192.0.0.1", never},
		{"192.0.0.192", never},
		{"192.0.2.1", never},
		{"192.88.99.1", never},
		{"198.18.0.1", never},
		{"198.19.255.255", never},
		{"198.51.100.1", never},
		{"203.0.113.1", never},
		{"224.0.0.1", never},
		{"239.255.255.255", never},
		{"240.0.0.1", never},
		{"255.255.255.255", never},
		{"::", never},
		{"::2", never},
		{"::8.8.8.8", never},
		{"::ffff:0:8.8.8.8", never},
		{"100::1", never},
		{"100:0:0:1::1", never},
		{"2001:2::1", never},
		{"2001:10::1", never},
		{"2001:20::1", never},
		{"2001:db8::1", never},
		{"3fff::1", never},
		{"4000::1", never},
		{"5f00::1", never},
		{"fe80::1", never},
		{"febf::1", never},
		{"fec0::1", never},
		{"fe80::1%eth0", never},
		{"2606:4700::1111%eth0", never},
		{"fd00:ec2::254", never},
		{"fd20:ce::254", never},
		{"fd00:42::42", never},
		{"ff02::1", never},
		{"ffff::1", never},
	} {
		if got := judge(netip.MustParseAddr(tt.addr)); got.reach != tt.want {
			t.Errorf("%s is %d, %s; want %d", tt.addr, got.reach, got.what, tt.want)
		}
	}
	if judge(netip.Addr{}).reach != never {
		t.Error("no address at all may be connected to")
	}
}

// Each rule decides about something: none stands behind one that contains it.
func TestEveryRuleCounts(t *testing.T) {
	t.Parallel()
	for i, r := range rules {
		for _, before := range rules[:i] {
			if before.prefix.Bits() <= r.prefix.Bits() && before.prefix.Contains(r.prefix.Addr()) {
				t.Errorf("%s never counts: %s stands in front of it", r.prefix, before.prefix)
			}
		}
		if r.prefix != r.prefix.Masked() {
			t.Errorf("%s has bits behind its length", r.prefix)
		}
	}
}

// oracle says in other words than the rules which addresses are never dialled for a
// public name.
func oracle(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return true
	}
	b := a.As16()
	if a.Is6() {
		switch {
		case b[0] == 0x20 && b[1] == 0x02:
			return oracle(netip.AddrFrom4([4]byte(b[2:6])))
		case b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0:
			return oracle(netip.AddrFrom4([4]byte(b[4:8]))) || oracle(netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
		case b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b && [8]byte(b[4:12]) == [8]byte{}:
			return oracle(netip.AddrFrom4([4]byte(b[12:])))
		}
		return b[0]>>5 != 1 ||
			b[0] == 0x20 && b[1] == 0x01 && (b[2] < 2 || b[2] == 0x0d && b[3] == 0xb8) ||
			b[0] == 0x3f && b[1] == 0xff && b[2] < 0x10
	}
	q := [4]byte(b[12:])
	return q[0] == 0 || q[0] >= 224 || q[0] == 127 || q[0] == 169 && q[1] == 254 ||
		q[0] == 100 && q[1]>>6 == 1 ||
		q[0] == 192 && q[1] == 0 && (q[2] == 0 || q[2] == 2) || q == [4]byte{168, 63, 129, 16} ||
		q[0] == 192 && q[1] == 88 && q[2] == 99 ||
		q[0] == 198 && (q[1]>>1 == 9 || q[1] == 51 && q[2] == 100) ||
		q[0] == 203 && q[1] == 0 && q[2] == 113
}

func FuzzJudge(f *testing.F) {
	for _, r := range rules {
		b := r.prefix.Addr().As16()
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, ok := netip.AddrFromSlice(raw)
		if ok && (judge(a).reach == public) == oracle(a) {
			t.Errorf("%s is judged as %v, the oracle says blocked: %t", a, judge(a), oracle(a))
		}
	})
}
