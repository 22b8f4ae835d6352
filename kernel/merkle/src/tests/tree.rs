//! The tree against an independent implementation (`ct-merkle`) and against the published Certificate Transparency
//! vectors.

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;
use sha2::Sha256;

use crate::proof::{ProofError, ProofPlan, StoredHashes, verify_consistency, verify_inclusion};
use crate::tree::{Frontier, FrontierError, Hash, SIZE_MAX, StoredHash, leaf_hash};

/// The eight leaves all CT implementations test with.
const CT_LEAVES: [&str; 8] =
    ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];

/// Their roots, by size from 1.
const CT_ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

const EMPTY_ROOT: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn hash(text: &str) -> Hash {
    Hash::from_bytes(hex(text).try_into().unwrap())
}

/// A log as we store it beside the same log in the oracle.
struct Twin {
    leaves: Vec<Hash>,
    stored: Vec<StoredHash>,
    roots: Vec<Hash>,
    oracle: MemoryBackedTree<Sha256, Vec<u8>>,
}

fn twin(size: usize) -> Twin {
    let mut frontier = Frontier::default();
    let mut oracle = MemoryBackedTree::new();
    let (mut leaves, mut hashes, mut roots) = (Vec::new(), Vec::new(), vec![frontier.root()]);
    for index in 0..size {
        let entry = format!("entry {index}").into_bytes();
        let leaf = leaf_hash(&entry);
        hashes.push(StoredHash { level: 0, index: index as u64, hash: leaf });
        hashes.extend(frontier.append(leaf));
        leaves.push(leaf);
        roots.push(frontier.root());
        oracle.push(entry);
    }
    Twin { leaves, stored: hashes, roots, oracle }
}

fn bytes(proof: &[Hash]) -> Vec<u8> {
    proof.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

/// Only what the plan asked for: shows that it asks for enough.
fn fetched(plan: &ProofPlan, stored: &[StoredHash]) -> StoredHashes {
    let needs = plan.needs();
    let needed = |hash: &StoredHash| {
        needs.iter().any(|range| range.level == hash.level && (range.from..range.to).contains(&hash.index))
    };
    stored.iter().copied().filter(needed).collect()
}

#[test]
fn the_published_roots_are_reached() {
    let mut frontier = Frontier::default();
    assert_eq!(frontier.root(), hash(EMPTY_ROOT));
    for (leaf, root) in CT_LEAVES.iter().zip(CT_ROOTS) {
        frontier.append(leaf_hash(&hex(leaf)));
        assert_eq!(frontier.root(), hash(root));
    }
}

#[test]
fn the_published_proofs_are_made_and_accepted() {
    let stored: StoredHashes = (0..)
        .zip(CT_LEAVES)
        .map(|(index, leaf)| StoredHash { level: 0, index, hash: leaf_hash(&hex(leaf)) })
        .collect();
    let inclusion: [(u64, u64, &[&str]); 3] = [
        (0, 1, &[]),
        (2, 3, &["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        (
            5,
            8,
            &[
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
    ];
    for (index, size, expected) in inclusion {
        let proof = ProofPlan::inclusion(index, size).unwrap().prove(&stored).unwrap();
        assert_eq!(proof, expected.iter().map(|text| hash(text)).collect::<Vec<_>>());
        let leaf = leaf_hash(&hex(CT_LEAVES[index as usize]));
        verify_inclusion(&leaf, index, size, &proof, &hash(CT_ROOTS[size as usize - 1])).unwrap();
    }
    let consistency: [(u64, u64, &[&str]); 2] = [
        (
            6,
            8,
            &[
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            5,
            &[
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ];
    for (old, new, expected) in consistency {
        let proof = ProofPlan::consistency(old, new).unwrap().prove(&stored).unwrap();
        assert_eq!(proof, expected.iter().map(|text| hash(text)).collect::<Vec<_>>());
        let (old_root, new_root) = (hash(CT_ROOTS[old as usize - 1]), hash(CT_ROOTS[new as usize - 1]));
        verify_consistency(old, &old_root, new, &new_root, &proof).unwrap();
    }
}

/// Every pair of sizes around the borders of a tile, against the oracle.
#[test]
fn proofs_are_the_oracles_proofs() {
    for size in [1, 2, 3, 7, 8, 255, 256, 257, 511, 513, 700] {
        let Twin { leaves, stored, roots, oracle } = twin(size);
        assert_eq!(roots[size].as_bytes()[..], oracle.root().as_bytes()[..]);
        for at in (0..size).filter(|at| size < 20 || at % 37 == 0 || at % 256 < 2 || *at + 2 > size) {
            let plan = ProofPlan::inclusion(at as u64, size as u64).unwrap();
            let proof = plan.prove(&fetched(&plan, &stored)).unwrap();
            assert_eq!(bytes(&proof), oracle.prove_inclusion(at).as_bytes().to_vec());
            verify_inclusion(&leaves[at], at as u64, size as u64, &proof, &roots[size]).unwrap();

            let old = at + 1;
            let plan = ProofPlan::consistency(old as u64, size as u64).unwrap();
            let proof = plan.prove(&fetched(&plan, &stored)).unwrap();
            assert_eq!(bytes(&proof), oracle.prove_consistency(size - old).as_bytes().to_vec());
            verify_consistency(old as u64, &roots[old], size as u64, &roots[size], &proof).unwrap();
        }
    }
}

/// Level 2 appears only after 65,536 leaves; proofs across it must use it.
#[test]
fn the_second_level_serves_proofs() {
    let size = 65_536 + 300;
    let mut frontier = Frontier::default();
    let (mut hashes, mut leaves) = (Vec::new(), Vec::new());
    for index in 0..size {
        let leaf = leaf_hash(&u64::to_be_bytes(index));
        hashes.push(StoredHash { level: 0, index, hash: leaf });
        hashes.extend(frontier.append(leaf));
        leaves.push(leaf);
    }
    assert_eq!(hashes.iter().filter(|stored| stored.level == 1).count(), 257);
    assert_eq!(hashes.iter().filter(|stored| stored.level == 2).count(), 1);
    for index in [0, 255, 65_535, 65_536, size - 1] {
        let plan = ProofPlan::inclusion(index, size).unwrap();
        let count: u64 = plan.needs().iter().map(|range| range.to - range.from).sum();
        assert!(count <= 3 * 2 * 256, "{count} hashes for one proof");
        let proof = plan.prove(&fetched(&plan, &hashes)).unwrap();
        verify_inclusion(&leaves[index as usize], index, size, &proof, &frontier.root()).unwrap();
    }
    let plan = ProofPlan::peaks(size).unwrap();
    let peaks = plan.prove(&fetched(&plan, &hashes)).unwrap();
    assert_eq!(Frontier::from_peaks(size, peaks).unwrap(), frontier);
    assert!(plan.needs().iter().any(|range| range.level == 2));
}

#[test]
fn bounds_are_errors() {
    assert_eq!(ProofPlan::inclusion(3, 3), Err(ProofError::BeyondLog { index: 3, size: 3 }));
    assert_eq!(ProofPlan::consistency(4, 3), Err(ProofError::Shrunk { old: 4, new: 3 }));
    assert_eq!(ProofPlan::inclusion(0, u64::MAX), Err(ProofError::TooLarge(u64::MAX)));
    let plan = ProofPlan::inclusion(1, 2).unwrap();
    assert_eq!(plan.prove(&StoredHashes::default()), Err(ProofError::Missing { level: 0, index: 0 }));
    assert!(Frontier::from_peaks(SIZE_MAX + 1, vec![leaf_hash(b""), leaf_hash(b"")]).is_err());
    assert_eq!(Frontier::from_bytes(&[0; 7]), Err(FrontierError::Length(7)));
    assert_eq!(Frontier::from_bytes(&[0; 9]), Err(FrontierError::Length(9)));
    assert!(matches!(Frontier::from_bytes(&[1; 8]), Err(FrontierError::PeakCount { .. })));
    // The largest tree there can be still has plans, and nothing overflows on the way.
    for index in [0, SIZE_MAX / 3, SIZE_MAX - 1] {
        assert!(!ProofPlan::inclusion(index, SIZE_MAX).unwrap().needs().is_empty());
        assert!(!ProofPlan::consistency(index.max(1), SIZE_MAX).unwrap().needs().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_frontier_survives_storage(size in 0usize..600) {
        let mut frontier = Frontier::default();
        for index in 0..size {
            frontier.append(leaf_hash(&index.to_be_bytes()));
        }
        prop_assert_eq!(Frontier::from_bytes(&frontier.to_bytes()).unwrap(), frontier);
    }

    #[test]
    fn random_proofs_agree_with_the_oracle(size in 1usize..600, at: prop::sample::Index, old: prop::sample::Index) {
        let Twin { leaves, stored, roots, oracle } = twin(size);
        let (at, old) = (at.index(size), old.index(size) + 1);
        let plan = ProofPlan::inclusion(at as u64, size as u64).unwrap();
        let proof = plan.prove(&fetched(&plan, &stored)).unwrap();
        prop_assert_eq!(bytes(&proof), oracle.prove_inclusion(at).as_bytes().to_vec());
        prop_assert!(verify_inclusion(&leaves[at], at as u64, size as u64, &proof, &roots[size]).is_ok());
        let plan = ProofPlan::consistency(old as u64, size as u64).unwrap();
        let proof = plan.prove(&fetched(&plan, &stored)).unwrap();
        prop_assert_eq!(bytes(&proof), oracle.prove_consistency(size - old).as_bytes().to_vec());
        let plan = ProofPlan::peaks(old as u64).unwrap();
        let rebuilt = Frontier::from_peaks(old as u64, plan.prove(&fetched(&plan, &stored)).unwrap()).unwrap();
        prop_assert_eq!(rebuilt.root(), roots[old]);
    }

    /// A proof proves one thing: any other leaf, place, size, root or proof is refused.
    #[test]
    fn a_changed_claim_is_refused(size in 2u64..300, at: prop::sample::Index, change in 0u8..6, other: [u8; 32]) {
        let Twin { leaves, stored, roots, .. } = twin(size as usize);
        let index = at.index(size as usize) as u64;
        let mut proof = ProofPlan::inclusion(index, size).unwrap().prove(&stored.into_iter().collect()).unwrap();
        let (mut leaf, mut claimed, mut root) = (leaves[index as usize], index, roots[size as usize]);
        match change {
            0 => leaf = Hash::from_bytes(other),
            1 => claimed = (index + 1) % size,
            2 => root = roots[size as usize - 1],
            3 => proof.push(Hash::from_bytes(other)),
            4 => { proof.pop(); }
            _ => proof[0] = Hash::from_bytes(other),
        }
        prop_assert!(verify_inclusion(&leaf, claimed, size, &proof, &root).is_err());
    }

    #[test]
    fn a_changed_history_is_refused(size in 2u64..300, at: prop::sample::Index, change in 0u8..5, other: [u8; 32]) {
        let Twin { stored, roots, .. } = twin(size as usize);
        let old = at.index(size as usize - 1) as u64 + 1;
        let mut proof = ProofPlan::consistency(old, size).unwrap().prove(&stored.into_iter().collect()).unwrap();
        let (mut old_root, mut new_root) = (roots[old as usize], roots[size as usize]);
        match change {
            0 => old_root = Hash::from_bytes(other),
            1 => new_root = Hash::from_bytes(other),
            2 => proof.push(Hash::from_bytes(other)),
            3 => { proof.pop(); }
            _ => proof[0] = Hash::from_bytes(other),
        }
        prop_assert!(verify_consistency(old, &old_root, size, &new_root, &proof).is_err());
    }

    #[test]
    fn checking_never_panics(index: u64, size: u64, old: u64, proof: Vec<[u8; 32]>) {
        let proof: Vec<Hash> = proof.into_iter().map(Hash::from_bytes).collect();
        let some = leaf_hash(b"some");
        let _ = verify_inclusion(&some, index, size, &proof, &some);
        let _ = verify_consistency(old, &some, size, &some, &proof);
    }
}

/// A proof that ends early reaches the root of a subtree, which is not the log's.
#[test]
fn a_subtree_is_not_the_log() {
    let Twin { leaves, stored, roots, .. } = twin(8);
    let proof = ProofPlan::inclusion(1, 2).unwrap().prove(&stored.into_iter().collect()).unwrap();
    assert_eq!(verify_inclusion(&leaves[1], 1, 2, &proof, &roots[2]), Ok(()));
    assert_eq!(verify_inclusion(&leaves[1], 1, 8, &proof, &roots[2]), Err(ProofError::Rejected));
    assert_eq!(verify_consistency(2, &roots[2], 8, &roots[2], &[]), Err(ProofError::Rejected));
}

#[test]
fn the_empty_log_is_a_prefix_of_every_log() {
    let (empty, some) = (Hash::of_empty_log(), leaf_hash(b"some"));
    assert_eq!(verify_consistency(0, &empty, 1, &some, &[]), Ok(()));
    assert_eq!(verify_consistency(0, &some, 1, &some, &[]), Err(ProofError::Rejected));
    assert_eq!(verify_consistency(1, &some, 1, &some, &[]), Ok(()));
    assert_eq!(verify_consistency(1, &some, 1, &some, &[some]), Err(ProofError::Rejected));
}
