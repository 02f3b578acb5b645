# The first process of a real node, in namespaces of its own. When it is killed, the kernel takes
# away all that is in them: processes, mounts, links, rules.
#
# $1: the node's folder. Nothing that happens to mounts here is seen by the rest of the machine.
set -eu
node=$1

# Not shared with the machine (unshare has seen to that), but shared within the node, as kubelet and
# its volumes want it.
mount --make-rshared /

# The machine's own programs, but places of the node's own for all that is written.
mount -t tmpfs -o mode=755 tmpfs /run
mount --bind "$node/lib" /var/lib
mount --bind "$node/log" /var/log

# kubelet insists on these, and would change them for the whole machine if it did not see them.
shadow() {
    [ -e "/proc/sys/$1" ] || return 0
    echo "$2" >"$node/sysctl/$(basename "$1")"
    mount --bind "$node/sysctl/$(basename "$1")" "/proc/sys/$1"
}
shadow vm/overcommit_memory 1
shadow vm/panic_on_oom 0
shadow kernel/panic 10
shadow kernel/panic_on_oops 1
shadow kernel/keys/root_maxkeys 1000000
shadow kernel/keys/root_maxbytes 25000000

# These are the node's own.
echo "$2" >/proc/sys/kernel/hostname
echo 1 >/proc/sys/net/ipv4/ip_forward

: >"$node/prepared"

# A shell that waits collects orphans too, which come to the first process.
while sleep 86400; do :; done
